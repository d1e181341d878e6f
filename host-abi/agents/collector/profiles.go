// SPDX-License-Identifier: Apache-2.0

// A batch as a message of the profiles signal. Its tables are alike (andiron/batch.h), so an entry
// becomes an entry. What frames, files and profiles are called is as in lib/export/{otlp,pprof}.h,
// where `otlp.write` has it from. The rules of the signal: entry 0 of each table is its zero value,
// no entry is there twice, none that nothing refers to; each type is a profile of its own, and CPU
// time in whole periods is written as counted samples.

package andironreceiver

import (
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	andiron "andiron/host-abi/bindings/go"
)

const (
	mostFrames = 4096 // the root side is kept
	mostLines  = 128
)

type function struct{ name, systemName, file, line int32 }

type mapping struct {
	start, limit, offset uint64
	file                 int32
	ids                  [3]int32 // attributes; 0: none
}

// Rows of one stack and thread are one sample.
type sample struct {
	stack  int32
	thread [3]int32 // attributes; 0: none
}

type attribute struct {
	key, text string
	number    int64 // where there is no text
}

// What one message is made of. An entry is found by its content, and by its place in the batch where
// that saves making the content.
type message struct {
	b          *andiron.Batch
	out        pprofile.Profiles
	dictionary pprofile.ProfilesDictionary

	strings    map[string]int32
	functions  map[function]int32
	mappings   map[mapping]int32
	attributes map[attribute]int32
	locations  map[string]int32
	stacks     map[string]int32

	texts       map[uint32]string
	ofLocations map[uint32]int32
	ofStacks    map[andiron.Stack]int32
}

func (r *profilesReceiver) convert(b *andiron.Batch) pprofile.Profiles {
	m := &message{
		b: b, out: pprofile.NewProfiles(),
		strings: map[string]int32{"": 0}, functions: map[function]int32{{}: 0},
		mappings: map[mapping]int32{{}: 0}, attributes: map[attribute]int32{},
		locations: map[string]int32{}, stacks: map[string]int32{},
		texts: map[uint32]string{}, ofLocations: map[uint32]int32{}, ofStacks: map[andiron.Stack]int32{},
	}
	m.dictionary = m.out.Dictionary()
	m.dictionary.StringTable().Append("")
	m.dictionary.FunctionTable().AppendEmpty()
	m.dictionary.MappingTable().AppendEmpty()
	m.dictionary.LocationTable().AppendEmpty()
	m.dictionary.LinkTable().AppendEmpty()
	m.dictionary.AttributeTable().AppendEmpty()
	m.dictionary.StackTable().AppendEmpty()
	for i := range b.Count(andiron.Groups) {
		m.putGroup(&r.resource, b.Group(i))
	}
	return m.out
}

func (m *message) text(i uint32) string {
	if i == 0 {
		return ""
	}
	text, ok := m.texts[i]
	if !ok {
		text = strings.ToValidUTF8(m.b.String(i), "\uFFFD")
		m.texts[i] = text
	}
	return text
}

func (m *message) putString(s string) int32 {
	at, ok := m.strings[s]
	if !ok {
		at = int32(m.dictionary.StringTable().Len())
		m.dictionary.StringTable().Append(s)
		m.strings[s] = at
	}
	return at
}

func (m *message) putAttribute(a attribute) int32 {
	at, ok := m.attributes[a]
	if !ok {
		table := m.dictionary.AttributeTable()
		at = int32(table.Len())
		entry := table.AppendEmpty()
		entry.SetKeyStrindex(m.putString(a.key))
		if a.text != "" {
			entry.Value().SetStr(a.text)
		} else {
			entry.Value().SetInt(a.number)
		}
		m.attributes[a] = at
	}
	return at
}

// --- Frames ---

func (m *message) putFunction(i uint32) int32 {
	f := m.b.Function(i)
	name, linked := m.text(f.Name), m.text(f.SystemName)
	if name == "" {
		name = linked
	}
	if name == "" {
		return m.addFunction(function{name: m.putString("[unknown]")})
	}
	return m.addFunction(function{m.putString(name), m.putString(linked), m.putString(m.text(f.File)), int32(f.StartLine)})
}

func (m *message) addFunction(f function) int32 {
	at, ok := m.functions[f]
	if !ok {
		table := m.dictionary.FunctionTable()
		at = int32(table.Len())
		entry := table.AppendEmpty()
		entry.SetNameStrindex(f.name)
		entry.SetSystemNameStrindex(f.systemName)
		entry.SetFilenameStrindex(f.file)
		entry.SetStartLine(int64(f.line))
		m.functions[f] = at
	}
	return at
}

func (m *message) putMapping(l *andiron.Location) int32 {
	from := m.b.Mapping(l.Mapping)
	file := m.text(from.File)
	switch {
	case l.Kind == andiron.FrameMarker:
		return m.addMapping(mapping{file: m.putString("[andiron]")})
	case l.Mapping != 0:
		if l.Kind == andiron.FrameKernel && !strings.HasPrefix(file, "[kernel") {
			file = "[kernel.kallsyms]"
		}
		if file == "" {
			file = "[unknown]"
		}
		return m.addMapping(m.fileMapping(&from, file))
	case l.Kind == andiron.FrameKernel:
		return m.addMapping(mapping{file: m.putString("[kernel.kallsyms]")})
	case l.Kind == andiron.FrameRuntime:
		return m.addMapping(mapping{file: m.putString("[" + m.runtimeOf(l) + "]")})
	}
	return m.addMapping(mapping{file: m.putString("[anon]")})
}

func (m *message) fileMapping(from *andiron.Mapping, file string) mapping {
	to := mapping{offset: from.Offset, file: m.putString(file)}
	if from.Start < from.Limit { // or both are to be 0
		to.start, to.limit = from.Start, from.Limit
	}
	for i, id := range [...]attribute{
		{key: "process.executable.build_id.gnu", text: m.text(from.GnuBuildID)},
		{key: "process.executable.build_id.go", text: m.text(from.GoBuildID)},
		{key: "process.executable.build_id.htlhash", text: m.text(from.FileID)},
	} {
		if id.text != "" {
			to.ids[i] = m.putAttribute(id)
		}
	}
	return to
}

func (m *message) addMapping(from mapping) int32 {
	at, ok := m.mappings[from]
	if !ok {
		table := m.dictionary.MappingTable()
		at = int32(table.Len())
		entry := table.AppendEmpty()
		entry.SetMemoryStart(from.start)
		entry.SetMemoryLimit(from.limit)
		entry.SetFileOffset(from.offset)
		entry.SetFilenameStrindex(from.file)
		appendKnown(entry.AttributeIndices(), from.ids)
		m.mappings[from] = at
	}
	return at
}

func (m *message) runtimeOf(l *andiron.Location) string {
	if name := m.text(l.Runtime); name != "" {
		return name
	}
	return "runtime"
}

// The value of profile.frame.type; "" for what is no frame.
func (m *message) frameType(l *andiron.Location) string {
	switch l.Kind {
	case andiron.FrameMarker:
		return ""
	case andiron.FrameKernel:
		return "kernel"
	case andiron.FrameRuntime:
		return m.runtimeOf(l)
	}
	if l.NLines > 0 {
		source := m.text(m.b.Function(m.b.Line(l.LineStart).Function).File)
		if strings.HasSuffix(source, ".go") {
			return "go"
		}
		if strings.HasSuffix(source, ".rs") {
			return "rust"
		}
	}
	return "native"
}

// A frame without a name is left to whoever has the file, if that can be told by a build id.
func (m *message) linesOf(l *andiron.Location) (lines []andiron.Line) {
	from := m.b.Mapping(l.Mapping)
	if l.Flags&andiron.LocationUnsymbolized != 0 && l.Address != 0 && (from.GnuBuildID != 0 || from.GoBuildID != 0) {
		l.NLines = 0
	}
	for i := range min(l.NLines, mostLines) {
		lines = append(lines, m.b.Line(l.LineStart+i))
	}
	return lines
}

func (m *message) putLocation(i uint32) int32 {
	at, ok := m.ofLocations[i]
	if ok {
		return at
	}
	l := m.b.Location(i)
	entry := pprofile.NewLocation()
	lines := m.linesOf(&l)
	entry.SetMappingIndex(m.putMapping(&l))
	entry.SetAddress(l.Address)
	for _, from := range lines {
		line := entry.Lines().AppendEmpty()
		line.SetFunctionIndex(m.putFunction(from.Function))
		line.SetLine(int64(from.Line))
		line.SetColumn(int64(from.Column))
	}
	nameless := l.Mapping == 0 && l.Kind != andiron.FrameKernel
	if len(lines) == 0 && (nameless || l.Address == 0) {
		entry.Lines().AppendEmpty().SetFunctionIndex(m.addFunction(function{name: m.putString("[unknown]")}))
	}
	var key []byte
	for _, n := range [...]uint64{uint64(entry.MappingIndex()), l.Address, uint64(entry.Lines().Len())} {
		key = binary.AppendUvarint(key, n)
	}
	for _, line := range entry.Lines().All() {
		for _, n := range [...]int64{int64(line.FunctionIndex()), line.Line(), line.Column()} {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	if kind := m.frameType(&l); kind != "" {
		entry.AttributeIndices().Append(m.putAttribute(attribute{key: "profile.frame.type", text: kind}))
		key = append(key, kind...)
	}
	if at, ok = m.locations[string(key)]; !ok {
		table := m.dictionary.LocationTable()
		at = int32(table.Len())
		entry.MoveTo(table.AppendEmpty())
		m.locations[string(key)] = at
	}
	m.ofLocations[i] = at
	return at
}

func (m *message) putStack(i uint32) int32 {
	s := m.b.Stack(i)
	at, ok := m.ofStacks[s]
	if ok {
		return at
	}
	frames := m.b.FramesOf(s)
	frames = frames[max(len(frames), mostFrames)-mostFrames:]
	if len(frames) == 0 {
		return 0
	}
	indices := make([]int32, len(frames))
	var key []byte
	for k, frame := range frames {
		indices[k] = m.putLocation(frame)
		key = binary.AppendUvarint(key, uint64(indices[k]))
	}
	if at, ok = m.stacks[string(key)]; !ok {
		table := m.dictionary.StackTable()
		at = int32(table.Len())
		table.AppendEmpty().LocationIndices().FromRaw(indices)
		m.stacks[string(key)] = at
	}
	m.ofStacks[s] = at
	return at
}

// --- Profiles ---

// One target's rows: a resource with a profile for each type.
func (m *message) putGroup(r *resource, g andiron.Group) {
	count := m.b.Count(andiron.Rows)
	if g.RowStart >= count {
		return
	}
	byType := map[uint32][]andiron.Row{}
	var order []uint32
	for i := range min(g.NRows, count-g.RowStart) {
		row := m.b.Row(g.RowStart + i)
		if row.Value <= 0 || row.Type >= m.b.Count(andiron.Types) {
			continue
		}
		if byType[row.Type] == nil {
			order = append(order, row.Type)
		}
		byType[row.Type] = append(byType[row.Type], row)
	}
	if len(order) == 0 {
		return
	}
	to := m.out.ResourceProfiles().AppendEmpty()
	id := r.put(m, g, to.Resource().Attributes())
	scope := to.ScopeProfiles().AppendEmpty()
	scope.Scope().SetName("andiron")
	for _, i := range order {
		m.putProfile(scope.Profiles().AppendEmpty(), m.b.Type(i), byType[i], id+uint64(i))
	}
}

func (m *message) isCounted(t *andiron.ProfileType, rows []andiron.Row) bool {
	if t.Period <= 0 || m.text(t.Unit) != "nanoseconds" || m.text(t.PeriodUnit) != "nanoseconds" ||
		m.text(t.Type) != m.text(t.PeriodType) {
		return false
	}
	for i := range rows {
		if rows[i].Value%t.Period != 0 {
			return false
		}
	}
	return true
}

func (m *message) putProfile(p pprofile.Profile, t andiron.ProfileType, rows []andiron.Row, id uint64) {
	kind, unit, divisor := m.text(t.Type), m.text(t.Unit), int64(1)
	if m.isCounted(&t, rows) {
		kind, unit, divisor = "samples", "count", t.Period
	}
	p.SampleType().SetTypeStrindex(m.putString(kind))
	p.SampleType().SetUnitStrindex(m.putString(unit))
	p.PeriodType().SetTypeStrindex(m.putString(m.text(t.PeriodType)))
	p.PeriodType().SetUnitStrindex(m.putString(m.text(t.PeriodUnit)))
	p.SetPeriod(t.Period)
	p.SetTime(pcommon.NewTimestampFromTime(m.b.Start))
	p.SetDurationNano(uint64(max(m.b.End.Sub(m.b.Start), 0)))
	var profileID pprofile.ProfileID
	binary.BigEndian.PutUint64(profileID[:8], uint64(m.b.Start.UnixNano()))
	binary.BigEndian.PutUint64(profileID[8:], id)
	p.SetProfileID(profileID)
	at := map[sample]int{}
	for i := range rows {
		key := sample{m.putStack(rows[i].Stack), m.threadOf(&rows[i])}
		k, ok := at[key]
		if !ok {
			k = p.Samples().Len()
			at[key] = k
			entry := p.Samples().AppendEmpty()
			entry.SetStackIndex(key.stack)
			appendKnown(entry.AttributeIndices(), key.thread)
			entry.Values().Append(0)
		}
		values := p.Samples().At(k).Values()
		values.SetAt(0, values.At(0)+rows[i].Value/divisor)
	}
}

func appendKnown(to pcommon.Int32Slice, attributes [3]int32) {
	for _, at := range attributes {
		if at != 0 {
			to.Append(at)
		}
	}
}

var threadAttributes = [...]struct{ from, to string }{
	{"process", "process.executable.name"}, {"comm", "thread.name"}, {"tid", "thread.id"},
}

// Which thread a row is of; 0: not known.
func (m *message) threadOf(row *andiron.Row) (indices [3]int32) {
	for _, a := range m.b.AttributesOf(row.AttrStart, row.NAttrs) {
		for i, want := range threadAttributes {
			if m.text(a.Key) != want.from || indices[i] != 0 {
				continue
			}
			value := attribute{key: want.to}
			if a.Kind == andiron.AttributeString {
				value.text = m.text(uint32(a.Value))
			} else {
				value.number = int64(a.Value)
			}
			if value.text != "" || value.number != 0 {
				indices[i] = m.putAttribute(value)
			}
		}
	}
	return indices
}
