// Package auth says who a client is: by a file of users, by a JSON Web Token (RFC 7519, with the advice of RFC 8725), or
// by a client certificate. It knows neither STOMP nor rights: the session hands in what CONNECT, the WebSocket handshake
// and TLS gave, and gets an Identity or a refusal. It also makes and shows tokens, for the command line.
package auth
