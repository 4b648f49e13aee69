package main

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parseText returns the value of type t that text stands for. All three ways to give a setting come here, so that they
// accept the same. The error is to be read after the text and does not repeat it.
func parseText(t reflect.Type, text string) (any, error) {
	if isList(t) {
		return parseList(t, text)
	}
	v := reflect.New(t)
	switch p := v.Interface().(type) {
	case encoding.TextUnmarshaler:
		if err := p.UnmarshalText([]byte(text)); err != nil {
			return nil, err
		}
	case *time.Duration:
		d, err := parseDuration(text)
		if err != nil {
			return nil, err
		}
		*p = d
	case *bool:
		b, err := parseBool(text)
		if err != nil {
			return nil, err
		}
		*p = b
	case *int:
		n, err := parseInt(text)
		if err != nil {
			return nil, err
		}
		*p = n
	case *string:
		*p = text
	default:
		return nil, fmt.Errorf("is of a type that cannot be configured: %v", t)
	}
	return v.Elem().Interface(), nil
}

// parseList splits text at its commas. Blanks around the parts do not count; an empty text is an empty list.
func parseList(t reflect.Type, text string) (any, error) {
	list := reflect.MakeSlice(t, 0, 0)
	if strings.TrimSpace(text) == "" {
		return list.Interface(), nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, errors.New("has an empty entry: separate the entries by single commas")
		}
		element, err := parseText(t.Elem(), part)
		if err != nil {
			return nil, err
		}
		list = reflect.Append(list, reflect.ValueOf(element))
	}
	return list.Interface(), nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, errors.New("has no unit: write for instance 500ms, 10s or 1h30m")
	}
	return 0, errors.New("is no duration: write for instance 500ms, 10s or 1h30m")
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}

// wholeNumber leaves out what YAML reads in other bases.
var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*(_[0-9]+)*)$`)

func parseInt(text string) (int, error) {
	if !wholeNumber.MatchString(text) {
		return 0, errors.New("is no whole number")
	}
	n, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
	if err != nil {
		return 0, errors.New("is a larger number than fits")
	}
	return n, nil
}

// formatValue is the reverse of parseText, with durations in their shortest form.
func formatValue(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case []string:
		return strings.Join(x, ",")
	}
	if isEntries(v.Type()) {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
