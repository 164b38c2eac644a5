"""A second, independent answer to "when does this schedule fire?", for the tests to compare with.

It imports nothing of noonmark and takes no short cuts: it walks UTC minute by minute (second by second where that
matters), reads the wall clock with `zoneinfo`, and writes down what a clerk with the written rules would.

- `cron`: what an expression says about one wall-clock time;
- `clock`: wall clocks of zones, from the `tzdata` package's files;
- `walk`: the walk, and what each gap and overlap rule makes of it;
- `inputs`: the zones, years and expressions that the comparison uses;
- `counts`: what was compared, for the last lines of the test report.
"""
