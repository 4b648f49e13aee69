// Package authz says what a session may do: it decides over a Casbin policy that can change at any time.
//
// An Authorizer holds the policy in force. Load takes the text of a new one, from a file, from a NATS bucket or from
// anywhere else; one with any fault is refused whole and the old one stays. A File loads and watches a file. A Session
// is one login; its Allowed is what SEND and SUBSCRIBE ask, and it remembers decisions for as long as the policy stays.
//
// The language is Casbin's (model, policy lines, effects), and Casbin takes every decision. Ours are:
//
//   - chanMatch, which compares channels token by token and judges the wildcards of a subscription: an allow rule has to
//     cover all of it, a deny rule needs only to have something in common with it;
//   - the subjects of a session: its identity, the roles it came with, and what g adds to them;
//   - the choice of the rules that Casbin is shown: those that could match. Casbin's time grows with the rules it is
//     shown, and a deny anywhere among them makes it look at all;
//   - the decisions that a session remembers. Casbin's cached enforcer is not used: it keeps answers of an old policy.
//
// The package knows nothing of destinations: its callers hand it the resource and channel of package router, from the
// same parsed value that the NATS subject comes from. It imports nothing of ours.
package authz
