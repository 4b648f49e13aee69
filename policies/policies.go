// Package policies holds the files that a natstomp with rights begins with: the Casbin model, an open policy and a
// worked example. docs/policies.md explains them.
package policies

import _ "embed" // For the files.

// Model is model.conf, the model that is used unless authz.model names another one; the same as authz.DefaultModel.
//
//go:embed model.conf
var Model string

// Open is open.csv, a policy that allows everything to everybody.
//
//go:embed open.csv
var Open string

// Example is example.csv, a policy of a shop with roles, denials, wildcards and {sub}.
//
//go:embed example.csv
var Example string
