// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// Case is what the lines since the last "==" have set up.
type Case struct {
	rules []*relabel.Config
	regex relabel.Regexp
	in    labels.Labels
	err   error
}

// quoted cuts a text in quotes off the front.
func quoted(rest string) (value, after string, err error) {
	if !strings.HasPrefix(rest, `"`) {
		return "", "", fmt.Errorf("a text in quotes is missing at %q", rest)
	}
	var out []byte
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			return string(out), strings.TrimLeft(rest[i+1:], " "), nil
		case c == '\\' && i+3 < len(rest) && rest[i+1] == 'x':
			n, err := strconv.ParseUint(rest[i+2:i+4], 16, 8)
			if err != nil {
				return "", "", err
			}
			out = append(out, byte(n))
			i += 3
		case c == '\\' && i+1 < len(rest):
			i++
			if rest[i] == 'n' {
				out = append(out, '\n')
			} else {
				out = append(out, rest[i])
			}
		default:
			out = append(out, c)
		}
	}
	return "", "", fmt.Errorf("a quote is not closed in %q", rest)
}

func pair(rest string) (name, value, after string, err error) {
	if strings.HasPrefix(rest, `"`) {
		if name, rest, err = quoted(rest); err != nil {
			return
		}
		rest = strings.TrimPrefix(rest, "=")
	} else {
		name, rest, _ = strings.Cut(rest, "=")
	}
	value, after, err = quoted(rest)
	return
}

func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < 0x20 || c > 0x7e:
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// rule makes a rule as YAML would: with defaults, then validated.
func rule(rest string) (*relabel.Config, error, error) {
	config := relabel.DefaultRelabelConfig
	var name, value string
	var err, wrong error
	for rest != "" {
		if name, value, rest, err = pair(rest); err != nil {
			return nil, nil, err
		}
		switch name {
		case "action":
			config.Action = relabel.Action(value)
		case "separator":
			config.Separator = value
		case "target_label":
			config.TargetLabel = value
		case "replacement":
			config.Replacement = value
		case "modulus":
			if config.Modulus, err = strconv.ParseUint(value, 10, 64); err != nil {
				return nil, nil, err
			}
		case "source_labels":
			config.SourceLabels = model.LabelNames{}
			for _, source := range strings.Split(value, ",") {
				if source != "" || strings.Contains(value, ",") {
					config.SourceLabels = append(config.SourceLabels, model.LabelName(source))
				}
			}
		case "regex":
			if value == "(.*)" {
				break // the default, which is told apart by its identity
			}
			if config.Regex, err = relabel.NewRegexp(value); err != nil && wrong == nil {
				wrong = err
			}
		default:
			return nil, nil, fmt.Errorf("what is %q?", name)
		}
	}
	if wrong == nil && !known[config.Action] {
		wrong = fmt.Errorf("unknown relabel action %q", config.Action)
	}
	if wrong == nil {
		wrong = config.Validate(model.UTF8Validation)
	}
	return &config, wrong, nil
}

var known = map[relabel.Action]bool{
	relabel.Replace: true, relabel.Keep: true, relabel.Drop: true, relabel.HashMod: true,
	relabel.LabelMap: true, relabel.LabelDrop: true, relabel.LabelKeep: true, relabel.Lowercase: true,
	relabel.Uppercase: true, relabel.KeepEqual: true, relabel.DropEqual: true,
}

func (c *Case) answerIn(rest string) (string, error) {
	set := map[string]string{}
	for rest != "" {
		name, value, after, err := pair(rest)
		if err != nil {
			return "", err
		}
		rest = after
		if value != "" {
			set[name] = value
		}
	}
	c.in = labels.FromMap(set)
	if c.err != nil {
		return oneLine("error " + c.err.Error()), nil
	}
	builder := labels.NewBuilder(c.in)
	for i, rule := range c.rules {
		if !relabel.ProcessBuilder(builder, rule) {
			return fmt.Sprintf("dropped %d", i+1), nil
		}
	}
	var pairs []string
	builder.Labels().Range(func(l labels.Label) {
		pairs = append(pairs, " "+quote(l.Name)+"="+quote(l.Value))
	})
	return "out" + strings.Join(pairs, ""), nil
}

// once works the rules off and takes the result, as Prometheus does per target.
func (c *Case) once() bool {
	builder := labels.NewBuilder(c.in)
	return relabel.ProcessBuilder(builder, c.rules...) && !builder.Labels().IsEmpty()
}

func (c *Case) answerText(rest string) (string, error) {
	text, _, err := quoted(rest)
	if err != nil {
		return "", err
	}
	if c.err != nil {
		return oneLine("error " + c.err.Error()), nil
	}
	places := c.regex.FindStringSubmatchIndex(text)
	if places == nil {
		return "none", nil
	}
	out := "groups"
	for i := 0; i < len(places); i += 2 {
		if places[i] < 0 {
			out += " -"
		} else {
			out += fmt.Sprintf(" %d-%d", places[i], places[i+1])
		}
	}
	return out, nil
}

func oneLine(s string) string {
	return strings.ReplaceAll(s, "\n", " ")
}

// Take takes a line and returns the answer, if it is one that asks.
func (c *Case) Take(line string) (string, error) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "==":
		*c = Case{}
	case "rule":
		rule, wrong, err := rule(rest)
		if err != nil {
			return "", err
		}
		if c.err == nil {
			c.err = wrong
		}
		c.rules = append(c.rules, rule)
	case "in":
		return c.answerIn(rest)
	case "regex":
		text, _, err := quoted(rest)
		if err != nil {
			return "", err
		}
		// As Prometheus does it, and also alone: an expression that only the
		// anchors around it make whole is told as such.
		c.regex, c.err = relabel.NewRegexp(text)
		if _, alone := regexp.Compile(text); c.err == nil && alone != nil {
			c.err = fmt.Errorf("only with anchors: %w", alone)
		}
	case "text":
		return c.answerText(rest)
	case "out", "dropped", "error", "groups", "none", "":
	default:
		if !strings.HasPrefix(line, "#") {
			return "", fmt.Errorf("what is %q?", verb)
		}
	}
	return "", nil
}
