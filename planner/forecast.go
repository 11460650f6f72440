// The forecast: how many requests will come, by a moving window and by a trend.

package planner

import (
	"math"
	"time"
)

// A Forecast is how many requests come in a second until the next advice takes effect.
type Forecast struct {
	Rate   float64 `json:"rate"`   // the larger of the two
	Window float64 `json:"window"` // as in the last part of the window
	Trend  float64 `json:"trend"`  // if it goes on to rise or fall as over the whole window
}

// movingParts is which part of the window the moving mean is over: it is to follow, while the trend is to be sure.
const movingParts = 3

// mostGrowth bounds the trend: no more than so many times what comes now. A load that begins has no trend yet.
const mostGrowth = 2

// forecast looks at the arrivals of the window.
func (o *Options) forecast(l *Load) Forecast {
	known := int(min(o.Window, l.Now-l.Since) / Bucket)
	arrivals := l.Arrivals[max(len(l.Arrivals)-known, 0):]
	n := len(arrivals)
	if n == 0 {
		return Forecast{}
	}
	sum := 0
	for _, a := range arrivals {
		sum += a
	}
	if sum == 0 {
		return Forecast{}
	}
	recent := arrivals[n-max(min(n, 2), n/movingParts):]
	f := Forecast{Window: perSecond(recent)}
	// What is advised now holds from when its workers have started until those of the next advice have.
	ahead := (o.Start + o.Interval) / Bucket
	f.Trend = min(trend(arrivals, float64(n-1)+float64(ahead)), mostGrowth*max(f.Window, perSecond(arrivals)))
	f.Rate = max(f.Window, f.Trend)
	return f
}

// with is the forecast of ours and of others, so many a second now, who rise and fall as ours do.
func (f Forecast) with(others float64) Forecast {
	if others <= 0 {
		return f
	}
	if f.Window == 0 {
		return Forecast{Rate: max(f.Rate, others), Window: others, Trend: max(f.Trend, others)}
	}
	times := (f.Window + others) / f.Window
	return Forecast{Rate: f.Rate * times, Window: f.Window * times, Trend: f.Trend * times}
}

func perSecond(arrivals []int) float64 {
	sum := 0
	for _, a := range arrivals {
		sum += a
	}
	return float64(sum) / (float64(len(arrivals)) * Bucket.Seconds())
}

// trend is the value at x of the straight line through the arrivals (least squares), in requests a second, with a slope
// that is less by its standard error; never below 0. Too few of them have none: then it is their mean.
func trend(arrivals []int, x float64) float64 {
	n := float64(len(arrivals))
	if n < 4 {
		return perSecond(arrivals)
	}
	var sx, sy, sxx, sxy float64
	for i, a := range arrivals {
		v, y := float64(i), float64(a)
		sx, sy, sxx, sxy = sx+v, sy+y, sxx+v*v, sxy+v*y
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	left := 0.0 // squares that the line leaves
	for i, a := range arrivals {
		d := float64(a) - (sy+slope*(n*float64(i)-sx))/n
		left += d * d
	}
	// Bursts look like trends: what chance alone would give is taken off.
	chance := math.Sqrt(left / (n - 2) / (sxx - sx*sx/n))
	slope = math.Copysign(math.Max(math.Abs(slope)-chance, 0), slope)
	return math.Max((sy+slope*(n*x-sx))/n, 0) / Bucket.Seconds()
}

// buckets counts times in spans of Bucket that end at now, from since on.
func buckets(times []time.Duration, since, now time.Duration) []int {
	n := int((now - since) / Bucket)
	counts := make([]int, max(n, 0))
	for _, t := range times {
		if i := n - 1 - int((now-t-1)/Bucket); t < now && i >= 0 && i < n {
			counts[i]++
		}
	}
	return counts
}
