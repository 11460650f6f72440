// Kinds: what can become of an event.

package holdings

// Kind is what became of an event or of a block of one.
type Kind uint8

// Kinds. Those of kvevents.Counts stand there.
const (
	Stored        Kind   = iota // blocks that were stored
	Moved                       // blocks that were copied to another tier, named without their tokens
	Removed                     // blocks that were removed
	RemoveUnknown               // blocks removed that were not known to be there
	MoveUnknown                 // blocks copied that were not known
	Shared                      // blocks stored in or removed from a store that engines share: counted, not indexed
	Orphan                      // blocks stored after one that is not known, which cannot be named
	WrongSize                   // blocks of another size than was assumed
	Reused                      // events by which a block's hash came to stand for another block
	Full                        // events for which the index had no room
	Contradicting               // events that contradict themselves
	NamelessLoRA                // blocks of adapters of which only a number is known, which no prompt will ask for
	Dropped                     // events of an engine that is about to be listened to anew
	Kinds         = iota        // how many there are
)

var kindText = [Kinds]string{"stored", "moved", "removed", "remove_unknown", "move_unknown", "shared", "orphan",
	"wrong_size", "hash_reused", "index_full", "contradicting", "nameless_lora", "dropped"}

// String is the kind's label in metrics.
func (k Kind) String() string { return kindText[k] }
