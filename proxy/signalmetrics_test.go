// Tests of what is counted of signals.

package proxy

import (
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/classify"
)

func TestKindsAreCountedTogether(t *testing.T) {
	m := &signalMetrics{
		computed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c"}, []string{"signal"}),
		took:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "t"}, []string{"signal"}),
	}
	const counters, kinds, times = 8, 20, 50
	var wg sync.WaitGroup
	for range counters {
		wg.Go(func() {
			for range times {
				for k := range kinds {
					m.of(classify.Kind(strconv.Itoa(k))).computed.Inc()
				}
			}
		})
	}
	wg.Wait()
	r := prometheus.NewRegistry()
	r.MustRegister(m.computed)
	families, err := r.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != kinds {
		t.Fatalf("%v %v, want %d kinds", families, err, kinds)
	}
	for _, series := range families[0].GetMetric() {
		if got := series.GetCounter().GetValue(); got != counters*times {
			t.Errorf("%v: %v, want %d", series.GetLabel(), got, counters*times)
		}
	}
	if got := len(*m.kinds.Load()); got != kinds {
		t.Errorf("%d kinds are kept, want %d", got, kinds)
	}
}
