package rig

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"
)

// Fetch returns what is answered to a GET, on a connection of its own.
func Fetch(tb testing.TB, url string) string {
	tb.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: Patience}
	resp, err := client.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Metric returns the value of one sample, which must be there, of the server whose admin listener has that address.
func Metric(tb testing.TB, admin, sample string) string {
	tb.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(sample) + ` (\S+)$`).FindStringSubmatch(Fetch(tb, "http://"+admin+"/metrics"))
	if m == nil {
		tb.Fatalf("no metric %s", sample)
	}
	return m[1]
}
