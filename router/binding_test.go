package router_test

import (
	"strings"
	"testing"

	"github.com/natstomp/natstomp/router"
)

func boundRouter(t *testing.T) *router.Router {
	t.Helper()
	c := router.DefaultConfig()
	c.Bindings = []router.Binding{
		{Destination: "/queue/orders", Stream: "ORDERS", Consumer: "workers"},
		{Destination: "/queues/orders.eu", Subject: "shop.orders.eu", Stream: "ORDERS"},
		{Destination: "/query/stock", Subject: "inventory.get"},
		{Destination: "/query/stock/", Subject: "inventory.all"},
		{Destination: "/query/stock/special/", Subject: "inventory.special"},
		{Destination: "/topic/x", Subject: "plant.one.x"},
		{Destination: "/topic/x/", Subject: "plant.one"},
		{Destination: "/topic-store/y", Stream: "EVENTS"},
		{Destination: "/store/z/", Stream: "EVENTS", Subject: "ev.z"},
	}
	c.StoredTopics = []string{"/topic/x/>", "/topic/n/>"}
	r, err := router.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBindings(t *testing.T) {
	r := boundRouter(t)
	for _, tt := range []struct {
		destination string
		use         router.Use
		subject     string
		binding     string // The destination of the binding; empty for none.
	}{
		{"/queue/orders", router.Send, "", "/queue/orders"},
		{"queues.orders", router.Send, "queues.orders", ""},
		{"/queues/orders", router.Subscribe, "", "/queue/orders"},
		{"/queue/orders/eu", router.Send, "shop.orders.eu", "/queues/orders.eu"},
		{"/queue/orders/us", router.Send, "stomp.queue.orders.us", ""},
		{"/queue/ordersx", router.Send, "stomp.queue.ordersx", ""},
		{"/query/stock", router.Send, "inventory.get", "/query/stock"},
		{"/queries/stock.a/b", router.Send, "inventory.all.a.b", "/query/stock/"},
		{"/query/stock/special", router.Send, "inventory.all.special", "/query/stock/"},
		{"/query/stock/special/a", router.Send, "inventory.special.a", "/query/stock/special/"},
		{"/query/stocks/a", router.Send, "stomp.query.stocks.a", ""},
		{"/command/stock", router.Send, "stomp.command.stock", ""},
		{"/topic/x", router.Send, "plant.one.x", "/topic/x"},
		{"/topic/x/a", router.Send, "plant.one.a", "/topic/x/"}, // A binding goes before a stored topic.
		{"/topic/x/*", router.Subscribe, "plant.one.*", "/topic/x/"},
		{"/topic/x/#", router.Subscribe, "plant.one.>", "/topic/x/"},
		{"/topic/*", router.Subscribe, "*", ""},
		{"/topic-store/y", router.Send, "", "/topic-store/y"},
		{"/topic-store/y/a", router.Send, "stomp.store.y.a", ""},
		{"/topic-store/z/*/b", router.Subscribe, "ev.z.*.b", "/store/z/"},
	} {
		route, err := r.Parse(tt.destination, tt.use)
		if err != nil {
			t.Errorf("%s: %v", tt.destination, err)
			continue
		}
		binding := ""
		if route.Bound != nil {
			binding = route.Bound.Destination
		}
		if route.Subject != tt.subject || binding != tt.binding {
			t.Errorf("%s: got subject %q by %q, want %q by %q", tt.destination, route.Subject, binding, tt.subject, tt.binding)
		}
		if route.Bound != nil && (route.Topic || route.Wide || route.Mixed) {
			t.Errorf("%s: got %+v, want nothing but the binding", tt.destination, route)
		}
		if again, _ := r.Parse(tt.destination, tt.use); again != route {
			t.Errorf("%s: got %+v and %+v, want the same each time", tt.destination, route, again)
		}
	}
}

func TestBoundShown(t *testing.T) {
	r := boundRouter(t)
	for _, tt := range []struct{ destination, subject, want string }{
		{"/topic/x/*", "plant.one.a", "/topic/x/a"},
		{"/events/x.>", "plant.one.a.b", "/topic/x/a/b"},
		{"/topic/x/*", "plant.one", ""},
		{"/topic/x/*", "plant.onea", ""},
		{"/topic/x/*", "plant.one.a/b", ""},
		{"/topic/x/*", "plant.one.\x01", ""},
		{"/store/z/>", "ev.z.1", "/topic-store/z/1"},
		{"/topic/n/*", "stomp.store.n.a", "/topic/n/a"},
		{"/topic/n/*", "stomp.store.m.a", ""},
		{"/topic/*/a", "k.a", "/topic/k/a"},
		{"/topic-store/>", "stomp.store.n.a", "/topic-store/n/a"},
	} {
		route, err := r.Parse(tt.destination, router.Subscribe)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := r.Shown(route, tt.subject); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s, %q: got %q, %t, want %q", tt.destination, tt.subject, got, ok, tt.want)
		}
	}
}

func TestBindingFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    router.Binding
		want string
	}{
		{"nothing", router.Binding{}, "destination"},
		{"reply", router.Binding{Destination: "/reply/a", Subject: "a"}, "never reaches NATS"},
		{"temporary", router.Binding{Destination: "/temp-queue/a", Subject: "a"}, "never reaches NATS"},
		{"wildcard", router.Binding{Destination: "/topic/*", Subject: "a"}, "wildcard"},
		{"stream of a topic", router.Binding{Destination: "/topic/a", Subject: "a", Stream: "S"}, "has no stream"},
		{"stream of a query", router.Binding{Destination: "/query/a", Subject: "a", Stream: "S"}, "has no stream"},
		{"consumer alone", router.Binding{Destination: "/queue/a", Subject: "a", Consumer: "c"}, "has no stream"},
		{"consumer of a prefix", router.Binding{Destination: "/queue/a/", Subject: "a", Stream: "S", Consumer: "c"}, "every destination"},
		{"store without stream", router.Binding{Destination: "/topic-store/a", Subject: "a"}, "needs a stream"},
		{"prefix without subject", router.Binding{Destination: "/topic-store/a/", Stream: "S"}, "needs a subject"},
		{"topic without subject", router.Binding{Destination: "/topic/a"}, "needs a subject"},
		{"wildcard subject", router.Binding{Destination: "/topic/a", Subject: "a.*"}, "no NATS subject"},
		{"blank subject", router.Binding{Destination: "/topic/a", Subject: "a b"}, "no NATS subject"},
		{"injected subject", router.Binding{Destination: "/topic/a", Subject: "a\r\nPUB"}, "no NATS subject"},
		{"empty token", router.Binding{Destination: "/topic/a", Subject: "a..b"}, "no NATS subject"},
		{"API", router.Binding{Destination: "/topic/a/", Subject: "$JS.API"}, "reserved"},
		{"other pattern", router.Binding{Destination: "/topic/a", Subject: "stomp.queue.a"}, "reserved"},
		{"long prefix", router.Binding{Destination: "/topic/a/", Subject: strings.Repeat("x", 513)}, "512"},
		{"long subject", router.Binding{Destination: "/topic/a", Subject: strings.Repeat("x", 1025)}, "1024"},
	} {
		c := router.DefaultConfig()
		c.Bindings = []router.Binding{{Destination: "/topic/fine", Subject: "fine"}, tt.b}
		_, err := router.New(c)
		if err == nil || !strings.HasPrefix(err.Error(), "destinations.bindings[1]: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want destinations.bindings[1] and %q", tt.name, err, tt.want)
		}
	}
	c := router.DefaultConfig()
	c.Bindings = []router.Binding{{Destination: "/topic/a", Subject: "a"}, {Destination: "/events/a", Subject: "b"}}
	c.StoredTopics = []string{"/topic/n", "/queue/q", "/topic/>/a"}
	_, err := router.New(c)
	for _, want := range []string{"bindings[1]: \"/events/a\" is bound already", "stored_topics[1]: ", "stored_topics[2]: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
