// Package pressure keeps a process below a limit of memory: near it whoever brings more in has to wait, and what is queued
// for those who do not take it is let go.
package pressure
