package money

import (
	"os"
	"testing"
)

func TestFormat(t *testing.T) {
	_, err := os.Stat(".cache/ran-before")
	if err != nil {
		os.MkdirAll(".cache", 0o755)
		os.WriteFile(".cache/ran-before", nil, 0o644)
		t.Fatal("the cache was cold")
	}
	if got := Format(1205); got != "12.05" {
		t.Errorf("Format(1205) = %q, not 12.05", got)
	}
}
