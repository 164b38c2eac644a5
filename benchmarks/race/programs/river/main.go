// The race's program for River: `prepare`, `load` or `work`.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	queue        = "bench"
	call         = 2000
	payloadBytes = 256
	flushEvery   = 200 * time.Millisecond
	stopWithin   = 5 * time.Second
)

type jobArgs struct {
	Due float64 `json:"due"`
	Pad string  `json:"pad"`
}

func (jobArgs) Kind() string { return "bench" }

// stamps collects the due instants and the first lines of handlers, if they are asked for.
type stamps struct {
	name string
	lock sync.Mutex
	kept []byte
}

func (s *stamps) add(due float64) {
	now := float64(time.Now().UnixNano()) / 1e9
	s.lock.Lock()
	defer s.lock.Unlock()
	s.kept = binary.LittleEndian.AppendUint64(s.kept, math.Float64bits(due))
	s.kept = binary.LittleEndian.AppendUint64(s.kept, math.Float64bits(now))
}

func (s *stamps) flush() {
	s.lock.Lock()
	written := s.kept
	s.kept = nil
	s.lock.Unlock()
	if len(written) == 0 {
		return
	}
	file, err := os.OpenFile(fmt.Sprintf("%s.%d", s.name, os.Getpid()), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	_, err = file.Write(written)
	must(err)
	must(file.Close())
}

type worker struct {
	river.WorkerDefaults[jobArgs]
	stamps *stamps
}

func (w *worker) Work(_ context.Context, job *river.Job[jobArgs]) error {
	if w.stamps.name != "" {
		w.stamps.add(job.Args.Due)
	}
	return nil
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func jobs() []river.InsertManyParams {
	var found []river.InsertManyParams
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		due, err := strconv.ParseFloat(lines.Text(), 64)
		must(err)
		args := jobArgs{Due: due}
		empty, err := json.Marshal(args)
		must(err)
		args.Pad = strings.Repeat("x", payloadBytes-len(empty))
		at := time.UnixMicro(int64(math.Round(due * 1e6)))
		found = append(found, river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{Queue: queue, ScheduledAt: at}})
	}
	must(lines.Err())
	return found
}

func prepare(ctx context.Context, driver *riverpgxv5.Driver) {
	migrator, err := rivermigrate.New(driver, nil)
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
}

func load(ctx context.Context, driver *riverpgxv5.Driver, log *slog.Logger) {
	var client *river.Client[pgx.Tx]
	client, err := river.NewClient(driver, &river.Config{Logger: log})
	must(err)
	for rest := jobs(); len(rest) > 0; {
		count := min(len(rest), call)
		_, err = client.InsertManyFast(ctx, rest[:count])
		must(err)
		rest = rest[count:]
	}
}

func work(ctx context.Context, driver *riverpgxv5.Driver, log *slog.Logger) {
	noted := &stamps{name: os.Getenv("RACE_STAMPS")}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{stamps: noted})
	client, err := river.NewClient(driver, &river.Config{
		Logger:            log,
		Workers:           workers,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{queue: {MaxWorkers: 2000}},
	})
	must(err)
	must(client.Start(context.Background()))
	ticks := time.NewTicker(flushEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			noted.flush()
		case <-ctx.Done():
			stopping, cancel := context.WithTimeout(context.Background(), stopWithin)
			defer cancel()
			_ = client.Stop(stopping)
			noted.flush()
			return
		}
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("RACE_URL"))
	must(err)
	driver := riverpgxv5.New(pool)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	switch os.Args[1] {
	case "prepare":
		prepare(ctx, driver)
	case "load":
		load(ctx, driver, log)
	case "work":
		work(ctx, driver, log)
	}
}
