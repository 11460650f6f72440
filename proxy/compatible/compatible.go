// Package compatible gives metrics the names by which other systems' dashboards know them. A row of
// a table is one name: which metric it is told from, which of its series, and by which labels. All
// is made when somebody scrapes; nothing is counted here.
//
//	families = compatible.Append(families, counted, []string{"dynamo"})
package compatible

import (
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// systems are those whose names can be asked for, in the order in which the configuration lists them.
var systems = []struct {
	name string
	rows []row
}{
	{"dynamo", dynamo},
	{"vllm-sr", semanticRouter},
	{"genai", genAI},
}

// Systems are the values of metrics.compatible.
func Systems() (names []string) {
	for _, s := range systems {
		names = append(names, s.name)
	}
	return names
}

// A row is one name of another system.
//
//  1. Series of from that come to have the same labels are added up. Gauges among them are numbers
//     of things, or alone.
//  2. A histogram has those of the buckets of from that are named, in the unit of the name; all of
//     them if none are. One in which nothing was observed is left out.
type row struct {
	name, help string
	from       string
	kind       dto.MetricType // of name; it may be a counter where from is a histogram, of which it then is the count
	scale      float64        // from the unit of from to that of name; 0: the same
	buckets    []float64      // in the unit of from, which has them among its own
	labels     []string
	values     func(series) []string // of labels, for one series of from; nil: it is left out. No function: labels are those of from
}

// A series is the labels of one metric of a family.
type series []*dto.LabelPair

// of is the value of a label; "": it has none.
func (s series) of(name string) string {
	for _, l := range s {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Append appends what the systems call the metrics that are among shown and counted, and sorts all
// by name. counted itself is not shown.
func Append(shown, counted []*dto.MetricFamily, names []string) []*dto.MetricFamily {
	known := make(map[string]*dto.MetricFamily, len(shown)+len(counted))
	for _, list := range [...][]*dto.MetricFamily{shown, counted} {
		for _, f := range list {
			known[f.GetName()] = f
		}
	}
	for _, s := range systems {
		if !slices.Contains(names, s.name) {
			continue
		}
		for i := range s.rows {
			if f := known[s.rows[i].from]; f != nil {
				if told := s.rows[i].tell(f); len(told.Metric) > 0 {
					shown = append(shown, told)
				}
			}
		}
	}
	slices.SortFunc(shown, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return shown
}

// tell makes the family of the row's name.
func (r *row) tell(f *dto.MetricFamily) *dto.MetricFamily {
	told := &dto.MetricFamily{Name: &r.name, Help: &r.help, Type: &r.kind}
	seen := map[string]*dto.Metric{}
	for _, m := range f.Metric {
		values, ok := r.valuesOf(m.Label)
		if !ok || m.Histogram != nil && m.Histogram.GetSampleCount() == 0 {
			continue
		}
		at := strings.Join(values, "\xff") // in no label: they are UTF-8
		sum := seen[at]
		if sum == nil {
			sum = &dto.Metric{Label: r.pairs(values)}
			seen[at] = sum
			told.Metric = append(told.Metric, sum)
		}
		r.add(sum, m)
	}
	return told
}

func (r *row) valuesOf(s series) (values []string, ok bool) {
	if r.values != nil {
		values = r.values(s)
		return values, values != nil
	}
	values = make([]string, len(r.labels))
	for i, name := range r.labels {
		values[i] = s.of(name)
	}
	return values, true
}

// pairs are the labels of the name, sorted as the text format wants them.
func (r *row) pairs(values []string) []*dto.LabelPair {
	pairs := make([]*dto.LabelPair, len(values))
	for i := range values {
		pairs[i] = &dto.LabelPair{Name: &r.labels[i], Value: &values[i]}
	}
	slices.SortFunc(pairs, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return pairs
}

// add adds m to sum.
func (r *row) add(sum, m *dto.Metric) {
	scale := r.scale
	if scale == 0 {
		scale = 1
	}
	switch {
	case r.kind == dto.MetricType_HISTOGRAM:
		addHistogram(sum, m.Histogram, r.buckets, scale)
	case r.kind == dto.MetricType_GAUGE:
		sum.Gauge = &dto.Gauge{Value: new(sum.GetGauge().GetValue() + scale*m.GetGauge().GetValue())}
	case r.kind == dto.MetricType_UNTYPED:
		sum.Untyped = &dto.Untyped{Value: new(sum.GetUntyped().GetValue() + scale*m.GetCounter().GetValue())}
	case m.Histogram != nil:
		sum.Counter = &dto.Counter{Value: new(sum.GetCounter().GetValue() + float64(m.Histogram.GetSampleCount()))}
	default:
		sum.Counter = &dto.Counter{Value: new(sum.GetCounter().GetValue() + scale*m.GetCounter().GetValue())}
	}
}

// addHistogram adds the buckets of h, which are the same in all series of a family.
func addHistogram(sum *dto.Metric, h *dto.Histogram, buckets []float64, scale float64) {
	bounds := boundsOf(h, buckets)
	if sum.Histogram == nil {
		sum.Histogram = &dto.Histogram{SampleCount: new(uint64(0)), SampleSum: new(0.0)}
		for _, b := range bounds {
			sum.Histogram.Bucket = append(sum.Histogram.Bucket, &dto.Bucket{UpperBound: new(b.GetUpperBound() * scale), CumulativeCount: new(uint64(0))})
		}
	}
	*sum.Histogram.SampleCount += h.GetSampleCount()
	*sum.Histogram.SampleSum += h.GetSampleSum() * scale
	for i, b := range bounds {
		*sum.Histogram.Bucket[i].CumulativeCount += b.GetCumulativeCount()
	}
}

// boundsOf are those buckets of h, or all; but for the one without a bound, which a series has only
// if an exemplar fell into it, and which is the count.
func boundsOf(h *dto.Histogram, buckets []float64) []*dto.Bucket {
	bounds := make([]*dto.Bucket, 0, len(h.Bucket))
	for _, b := range h.Bucket {
		if at := b.GetUpperBound(); !math.IsInf(at, 1) && (buckets == nil || slices.Contains(buckets, at)) {
			bounds = append(bounds, b)
		}
	}
	return bounds
}

// Buckets are those of what is counted by this name: of all who tell it, each of which has its own.
func Buckets(counted string) (all []float64) {
	for _, s := range systems {
		for i := range s.rows {
			if s.rows[i].from == counted {
				all = append(all, s.rows[i].buckets...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const (
	counter   = dto.MetricType_COUNTER
	gauge     = dto.MetricType_GAUGE
	histogram = dto.MetricType_HISTOGRAM
	untyped   = dto.MetricType_UNTYPED // a counter that OpenMetrics would rename: it ends in no _total
)
