package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], process{os.Environ(), os.Stdin, os.Stdout, os.Stderr}))
}
