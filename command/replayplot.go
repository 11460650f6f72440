// A picture of `kvasir replay`: how long people waited and how much there was to do as time went on, by policy.

package command

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvasir/chart"
	"kvasir/kvroute"
	"kvasir/kvroute/replay"
	"kvasir/wording"
)

// plotFlags are the flags of the picture.
type plotFlags struct {
	file   string
	beside []string // policies
}

func (f *plotFlags) add(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "plot", "", "draw first tokens and load over time into this `file`, an SVG")
	fs.StringSliceVar(&f.beside, "beside", nil, "with --plot: `policies` to play and draw beside --policy, such as round_robin,kv")
	_ = cmd.MarkFlagFilename("plot", "svg")
	_ = cmd.RegisterFlagCompletionFunc("beside", cobra.FixedCompletions(replay.Policies(), cobra.ShellCompDirectiveNoFileComp))
}

// check wants policies that there are, each once, and a folder for the picture: a replay may take minutes.
func (f *plotFlags) check(policy string) error {
	if len(f.beside) > 0 && f.file == "" {
		return usageError("--beside is of the picture: add --plot")
	}
	if f.file != "" {
		if _, err := os.Stat(filepath.Dir(f.file)); err != nil {
			return fmt.Errorf("cannot write the picture: %w", err)
		}
	}
	seen := []string{policy}
	for _, name := range f.beside {
		if !slices.Contains(replay.Policies(), name) {
			return usageError(fmt.Sprintf("--beside: %s is not %s%s", wording.Quote(name), wording.List(replay.Policies(), "or"), wording.DidYouMean(name, replay.Policies())))
		}
		if slices.Contains(seen, name) {
			return usageError(fmt.Sprintf("--beside: %s is drawn already", name))
		}
		seen = append(seen, name)
	}
	return nil
}

// others are the options for the policies beside the one that is played.
func (f *plotFlags) others(o replay.Options, queue bool) ([]replay.Options, error) {
	var found []replay.Options
	for _, name := range f.beside {
		policy, err := kvroute.ParsePolicy(name)
		if err != nil {
			return nil, err
		}
		o.Policy, o.Queue = name, queue && policy.Queues()
		found = append(found, o)
	}
	return found, nil
}

// write draws the results into the file.
func (f *plotFlags) write(t *replay.Trace, results []*replay.Result) error {
	if err := os.WriteFile(f.file, plotOf(t, results), 0o644); err != nil {
		return fmt.Errorf("cannot write the picture: %w", err)
	}
	return nil
}

// plotColumns is into how many parts the time of the trace is cut.
const plotColumns = 80

// plotOf draws, for the requests that came in each part of the time, the mean and the slowest tenth of their times to the
// first token, and how many requests were under way.
func plotOf(t *replay.Trace, results []*replay.Result) []byte {
	first := results[0]
	c := chart.Chart{
		Title: fmt.Sprintf("%s at speed %g, %d workers", t.Name, first.Speed, first.Workers),
		Note:  "kvasir replay: simulated workers in virtual time",
		Panels: []chart.Panel{
			{Title: "time to first token, mean, ms", Log: true},
			{Title: "time to first token, nine of ten are below, ms", Log: true},
			{Title: "requests under way"},
		},
	}
	length := time.Duration(0)
	for _, r := range results {
		length = max(length, r.Duration)
	}
	step := max(length/plotColumns, time.Millisecond)
	for i, r := range results {
		c.Series = append(c.Series, r.Policy)
		for j, line := range linesOf(t, r, step) {
			c.Panels[j].X = "seconds since the first request"
			c.Panels[j].Lines = append(c.Panels[j].Lines, chart.Line{Series: i, Points: line})
		}
	}
	return c.SVG()
}

// linesOf are one policy's lines in the three panels.
func linesOf(t *replay.Trace, r *replay.Result, step time.Duration) [3][]chart.Point {
	columns := int(r.Duration/step) + 1
	waited := make([][]float64, columns)
	busy := make([]time.Duration, columns) // time that requests spent in this part, all together
	for i, one := range r.Each {
		from := time.Duration(float64(t.Requests[i].Arrival-t.Requests[0].Arrival) / r.Speed)
		column := min(int(from/step), columns-1)
		waited[column] = append(waited[column], one.TTFT.Seconds()*1e3)
		for to := from + one.E2E; column < columns && from < to; column++ {
			end := min(to, time.Duration(column+1)*step)
			busy[column] += end - from
			from = end
		}
	}
	var lines [3][]chart.Point
	for column := range columns {
		x := (time.Duration(column)*step + step/2).Seconds()
		mean, tenth := math.NaN(), math.NaN()
		if w := waited[column]; len(w) > 0 {
			slices.Sort(w)
			mean, tenth = 0, w[len(w)*9/10]
			for _, ms := range w {
				mean += ms / float64(len(w))
			}
		}
		for i, y := range []float64{mean, tenth, float64(busy[column]) / float64(step)} {
			lines[i] = append(lines[i], chart.Point{X: x, Y: y})
		}
	}
	return lines
}
