// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode"
)

// Go's own Unicode tables as C, in the form that lib/regex/unicode-tables.py makes from the Unicode
// Character Database: equal texts mean the same characters by \p{Lu}, (?i) and lowercase.

// runs says of each code point which of the tables it is in, as runs: the
// length of a run (varint) and the place of its table in names plus one (0: none).
func runs(tables map[string]*unicode.RangeTable, names []string) []byte {
	member := make([]byte, unicode.MaxRune+1)
	for i, name := range names {
		for c := range member {
			if unicode.Is(tables[name], rune(c)) {
				member[c] = byte(i + 1)
			}
		}
	}
	var out []byte
	for c := 0; c < len(member); {
		end := c
		for end < len(member) && member[end] == member[c] {
			end++
		}
		out = binary.AppendUvarint(out, uint64(end-c))
		out = append(out, member[c])
		c = end
	}
	return out
}

func writeBytes(w io.Writer, name string, data []byte) {
	fmt.Fprintf(w, "const uint8_t %s[] = {", name)
	column := 100
	for _, b := range data {
		text := fmt.Sprintf("%d,", b)
		if column+len(text) > 99 {
			fmt.Fprintf(w, "\n\t")
			column = 8
		}
		io.WriteString(w, text)
		column += len(text)
	}
	fmt.Fprintf(w, "\n};\nconst size_t %s_size = sizeof(%s);\n", name, name)
}

// canonical is a name as it is looked up: upper case first, then lower case,
// without underscores.
func canonical(name string) string {
	name = strings.ReplaceAll(name, "_", "")
	return strings.ToUpper(name[:1]) + strings.ToLower(name[1:])
}

// writeNames lists names, each with its number; 0 ends it.
func writeNames(w io.Writer, array string, names map[string]string) {
	var keys []string
	for key := range names {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	fmt.Fprintf(w, "\nconst struct unicode_name %s[] = {\n", array)
	for _, key := range keys {
		fmt.Fprintf(w, "\t{\"%s\", %s},\n", key, names[key])
	}
	fmt.Fprintf(w, "};\nconst size_t %s_count = %d;\n", array, len(keys))
}

// general lists the general categories that are no union of others.
func general() []string {
	var names []string
	for name := range unicode.Categories {
		if len(name) == 2 && name != "LC" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// writeCategories: a category is a set of the general ones, as a bit mask.
func writeCategories(w io.Writer) {
	parts := general()
	mask := func(name string) string {
		table, bits := unicode.Categories[name], uint64(0)
		for i, part := range parts {
			if r := unicode.Categories[part]; unicode.Is(table, first(r)) {
				bits |= 1 << i
			}
		}
		return fmt.Sprintf("UINT64_C(0x%x)", bits)
	}
	writeBytes(w, "unicode_categories", runs(unicode.Categories, parts))
	names := map[string]string{}
	for name := range unicode.Categories {
		names[canonical(name)] = mask(name)
	}
	for alias, name := range unicode.CategoryAliases {
		if names[canonical(alias)] == "" {
			names[canonical(alias)] = mask(name)
		}
	}
	writeNames(w, "unicode_category_names", names)
}

func first(t *unicode.RangeTable) rune {
	if len(t.R16) > 0 {
		return rune(t.R16[0].Lo)
	}
	return rune(t.R32[0].Lo)
}

func writeScripts(w io.Writer) {
	var scripts []string
	for name := range unicode.Scripts {
		scripts = append(scripts, name)
	}
	sort.Strings(scripts)
	writeBytes(w, "unicode_scripts", runs(unicode.Scripts, scripts))
	names := map[string]string{}
	for i, name := range scripts {
		names[canonical(name)] = fmt.Sprint(i + 1)
	}
	writeNames(w, "unicode_script_names", names)
}

type change struct{ upper, lower, fold rune }

func changeOf(c rune) change {
	return change{unicode.ToUpper(c) - c, unicode.ToLower(c) - c, unicode.SimpleFold(c) - c}
}

// writeCase lists runs of characters, every one or every second, whose
// mappings differ from themselves by the same.
func writeCase(w io.Writer) {
	fmt.Fprintf(w, "/* first, last, step, to upper case, to lower case, to the next that folds alike */\n")
	fmt.Fprintf(w, "const struct unicode_case unicode_cases[] = {\n")
	n, none := 0, change{}
	done := map[rune]bool{}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		d := changeOf(c)
		if d == none || done[c] {
			continue
		}
		step, last := rune(1), c
		if changeOf(c+1) != d && changeOf(c+2) == d {
			step = 2
		}
		// What lies between is of one run, too: then no more than two overlap.
		for ; changeOf(last+step) == d && (step == 1 || changeOf(last+1) == changeOf(c+1)); last += step {
			done[last+step] = true
		}
		fmt.Fprintf(w, "\t{%d,%d,%d,%d,%d,%d},\n", c, last, step, d.upper, d.lower, d.fold)
		n++
	}
	fmt.Fprintf(w, "};\nconst size_t unicode_cases_count = %d;\n", n)
}

func writeTables(out io.Writer, which string) error {
	w := bufio.NewWriter(out)
	defer w.Flush()
	switch which {
	case "category":
		writeCategories(w)
	case "script":
		writeScripts(w)
	case "case":
		writeCase(w)
	default:
		return fmt.Errorf("tables category, script or case, not %q", which)
	}
	return nil
}
