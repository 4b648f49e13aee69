package main

import (
	"slices"
	"strings"
)

// didYouMean returns the hint for a mistyped name, or "" if no known name is near.
func didYouMean(name string, known []string) string {
	best, bestDistance := "", 1+len(name)/3
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance || d == bestDistance && best == "" {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// keyElsewhere returns the hint for a known key in the wrong section, or "" if name is none.
func keyElsewhere(name string, paths []string) string {
	const most = 3
	var found []string
	for _, p := range paths {
		if p == name || strings.HasSuffix(p, "."+name) {
			found = append(found, p)
		}
	}
	if len(found) == 0 || len(found) > most {
		return ""
	}
	slices.Sort(found)
	return "did you mean " + strings.Join(found, " or ") + "?"
}

// distance is the number of octets to insert, delete, change or swap with their neighbour that turns a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
