// Reads a compose file as `docker compose` does and prints what it means, as JSON, or fails with what is wrong with it.
// COMPOSE_PROFILES chooses the profiles, as there; `*` means all of them.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(files []string) error {
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithDefaultProfiles())
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	shown, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(shown))
	return err
}
