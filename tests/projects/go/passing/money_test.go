package money

import "testing"

func TestFormat(t *testing.T) {
	if got := Format(1205); got != "12.05" {
		t.Errorf("Format(1205) = %q, not 12.05", got)
	}
}
