package authz_test

import (
	"fmt"

	"github.com/natstomp/natstomp/authz"
)

func Example() {
	a, err := authz.New(authz.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = a.Load("policy.csv", []byte(`
p, role:sales, queues, orders.*, write, allow
p, *, queues, orders.internal, *, deny
g, anna, role:sales
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	anna, err := a.Session("anna", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(anna.Allowed(authz.Write, "queues", "orders.new"))
	fmt.Println(anna.Allowed(authz.Read, "queues", "orders.new"))
	fmt.Println(anna.Explain(authz.Write, "queues", "orders.internal").Reason)

	fmt.Println(a.Load("policy.csv", []byte("p, role:sales, queue, orders.*, write, alow")))
	// Output:
	// true
	// false
	// line 3 denies
	// policy.csv:1: resource "queue" is not one of events, events_store, queues, commands, queries, * (did you mean queues?)
	// policy.csv:1: effect "alow" is not one of allow, deny
}
