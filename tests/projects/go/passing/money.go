// Package money formats amounts.
package money

import "fmt"

// Format returns cents as an amount.
func Format(cents int) string {
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}
