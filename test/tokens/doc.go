// Package tokens makes JSON Web Tokens for tests: good ones of every algorithm, and those that must be refused.
package tokens
