"""Which commands need a shell, and what the others start."""

import shlex

import pytest

from noonmark.core.crontab.shell import Program, ShellNeededError, program_of


@pytest.mark.parametrize(
    "command",
    [
        "/opt/a", "/opt/a  -x   --y=1", "a 'b c' \"d e\"", "a 'x'\"y\"z", "a \\$5 \\*", "a '' \"\"", "a \"it's\" '\"'",
        "a 'p | q > r'", 'a "p & q; * ?"', 'a "\\\\ \\""', "a b#c", "a x~y", "a {}", "a b=c", "find /x -name '*.a'",
        'a "b\\c"', "a +%F", "a @x,y:z", "a ]", "a -- -b", "echo hi", "a\tb", "echo -n hi",
    ],
)  # fmt: skip
def test_plain_words_are_read_as_a_posix_shell_reads_them(command):
    assert list(program_of(command).argv) == shlex.split(command)


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("a | b", "a pipe"), ("a > /x", "a redirect"), ("a < /x", "a redirect"), ("a 2>&1", "a redirect"),
        ("a && b", "&,"), ("a || b", "a pipe"), ("a &", "&,"), ("a; b", "a list of commands"), ("(a)", "a subshell"),
        ("a $X", "a variable"), ('a "$X"', "a variable"), ("a `b`", "a command substitution"),
        ('a "`b`"', "a command substitution"), ("a *.x", "a pattern"), ("a b?", "a pattern"), ("a [ab]", "a pattern"),
        ("a {b,c}", "a list in braces"), ("a ~/b", "~, a home"), ("~/a", "~, a home"), ("a b=~/c", "~, a home"),
        ("a # b", "a comment"), ("a 'b", "a quote that is not closed"), ('a "b', "a quote that is not closed"),
        ("a \\", "a backslash at its end"), ("cd /x", "'cd'"), (". /etc/profile", "'.'"), ("source /x", "'source'"),
        ("exec a", "'exec'"), ("! a", "'!'"), ("X=1", "variables and no command"), ("cd $D && a", "a variable"),
        ("cd /x && a | b", "a pipe"), ("cd /x && cd y", "'cd'"), ("a\nb", "several lines"),
        ("'exit' 3", "'exit'"), ("\\. /x", "'.'"), ('"eval" a', "'eval'"), ("coproc a", "'coproc'"),
        ("echo 'a\\tb'", "an echo with a backslash"), ("echo -e a", "-e"), ("echo -ne a", "-e"),
    ],
)  # fmt: skip
def test_what_only_a_shell_does_is_named(command, what):
    with pytest.raises(ShellNeededError) as refused:
        program_of(command)
    assert what in refused.value.what


@pytest.mark.parametrize(
    "shell", ["/usr/local/bin/with-mail", "/usr/bin/python3", "/sbin/nologin", "/bin/csh"]
)
def test_what_is_no_bourne_shell_may_do_anything_with_a_line(shell):
    with pytest.raises(ShellNeededError) as refused:
        program_of("/opt/a", shell)
    assert shell in refused.value.what
    assert program_of("/opt/a", "/usr/bin/bash") == program_of("/opt/a")


def test_variables_before_the_command_are_the_program_s():
    assert program_of("A=1 B='x y' C= /opt/a b") == Program(
        ("/opt/a", "b"), (("A", "1"), ("B", "x y"), ("C", ""))
    )


def test_a_quoted_word_with_an_equals_sign_is_no_variable():
    assert program_of("'A=1' b").argv == ("A=1", "b")


def test_a_fixed_folder_is_where_the_program_starts():
    assert program_of("cd /srv/shop  &&  ./run --all") == Program(("./run", "--all"), (), "/srv/shop")
