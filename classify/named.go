// Model: the model that the client named.

package classify

// KindModel has the names of models as values.
const KindModel Kind = "model"

func isModel(j *judging, value string) (float64, bool) {
	return 1, j.r.Model == value
}

func foundModel(j *judging) string { return j.r.Model }
