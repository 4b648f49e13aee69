package admin

import "time"

// Connection is a session as JSON. ClientID, Version, RemoteAddr, ConnectedAt, Username and Subscriptions have the
// names of KubeMQ's connectors.
type Connection struct {
	ID              string         `json:"id"`
	ClientID        string         `json:"client_id"` // The session of CONNECTED.
	Username        string         `json:"username"`  // The login of CONNECT.
	RemoteAddr      string         `json:"remote_addr"`
	Version         string         `json:"version"`
	Transport       string         `json:"transport"`
	ConnectedAt     time.Time      `json:"connected_at"`
	Subscriptions   []Subscription `json:"subscriptions"`
	PendingBytes    int            `json:"pending_bytes"`
	PendingReceipts int            `json:"pending_receipts"`
	Unacked         int            `json:"unacked"`
	FramesIn        uint64         `json:"frames_in"`
	FramesOut       uint64         `json:"frames_out"`
	BytesIn         uint64         `json:"bytes_in"`
	BytesOut        uint64         `json:"bytes_out"`
}

// Subscription is one of a Connection.
type Subscription struct {
	ID      string `json:"id"`
	Filter  string `json:"filter"` // The destination of SUBSCRIBE.
	Pattern string `json:"pattern"`
	Channel string `json:"channel"`
	Ack     string `json:"ack"`
	Unacked int    `json:"unacked"`
	Dropped uint64 `json:"dropped"` // Messages for which there was no room.
}
