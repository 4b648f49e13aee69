package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// fetchTimeout bounds one fetch, redirects and all.
	fetchTimeout = 10 * time.Second
	// maxFetched is the octets of what is fetched.
	maxFetched = 1 << 20
	// maxRedirects is how often an answer may point elsewhere.
	maxRedirects = 3
)

// fetcher gets key sets over https, and over nothing else.
type fetcher struct{ client *http.Client }

// newFetcher trusts the given authorities, or those of the system where they are nil.
func newFetcher(roots *x509.CertPool) *fetcher {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true, // The next fetch is minutes away.
		ForceAttemptHTTP2:      true,
	}
	redirect := func(r *http.Request, via []*http.Request) error {
		switch {
		case r.URL.Scheme != "https":
			return errors.New("redirected to something other than https")
		case len(via) > maxRedirects:
			return errors.New("redirected too often")
		}
		return nil
	}
	return &fetcher{&http.Client{Transport: transport, CheckRedirect: redirect, Timeout: fetchTimeout}}
}

// get returns the body of the answer. The error names the host, not the rest of the URL, which may be secret.
func (f *fetcher) get(ctx context.Context, u *url.URL) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: no request can be made", u.Host)
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := f.client.Do(r)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("%s: %w", u.Host, err)
	}
	defer func() { _ = resp.Body.Close() }() // What it says is of no use any more.
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: answered %d", u.Host, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Host, err)
	}
	if len(body) > maxFetched {
		return nil, fmt.Errorf("%s: answered more than %d octets", u.Host, maxFetched)
	}
	return body, nil
}
