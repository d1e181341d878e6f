// SPDX-License-Identifier: Apache-2.0

// Profile batches as Go reads them: the columns of andiron/batch.h, whose text says what is in each.
//
// Records are copied out one by one, so a program keeps what it has read; the columns themselves
// are C's memory. A batch is read within the call that gave it, and is empty after that. Whatever
// stands in a batch, no read leaves its memory: a column that does has the batch refused, and a
// record, text or index that is not there reads as zero.

package andiron

import (
	"syscall"
	"time"
	"unsafe"
)

// Column is one of a batch's tables.
type Column uint32

const (
	Strings Column = 1 + iota
	Functions
	Lines
	Locations
	Mappings
	Stacks
	Frames
	Attributes
	AttributeIndices
	Links
	Types
	Groups
	Rows
	Times
	Losses
	Encodeds
	columnEnd
)

// Kinds of locations and attributes, and formats of encoded profiles.
const (
	FrameNative  = 1
	FrameKernel  = 2
	FrameRuntime = 3
	FrameMarker  = 4

	LocationUnsymbolized = 1

	AttributeString = 1
	AttributeInt    = 2

	EncodedPprof  = 1
	EncodedJFR    = 2
	EncodedIngest = 3
)

// andiron_string
type cStringRecord struct {
	offset  uint64
	length  uint32
	segment uint32
}

// Function is andiron_function.
type Function struct {
	Name       uint32
	SystemName uint32
	File       uint32
	StartLine  uint32
}

// Line is andiron_line.
type Line struct {
	Function uint32
	Line     uint32
	Column   uint32
	reserved uint32
}

// Location is andiron_location.
type Location struct {
	Address   uint64
	Mapping   uint32
	Kind      uint16
	reserved  uint16
	Runtime   uint32
	LineStart uint32
	NLines    uint32
	Flags     uint32
}

// Mapping is andiron_mapping.
type Mapping struct {
	Start      uint64
	Limit      uint64
	Offset     uint64
	Object     uint64
	File       uint32
	GnuBuildID uint32
	GoBuildID  uint32
	FileID     uint32
}

// Stack is andiron_stack.
type Stack struct {
	Start  uint32
	Length uint32
}

// Attribute is andiron_attribute.
type Attribute struct {
	Value    uint64
	Key      uint32
	Kind     uint32
	Unit     uint32
	reserved uint32
}

// Link is andiron_link.
type Link struct {
	TraceID [16]byte
	SpanID  [8]byte
}

// ProfileType is andiron_profile_type.
type ProfileType struct {
	Name       uint32
	Type       uint32
	Unit       uint32
	PeriodType uint32
	PeriodUnit uint32
	reserved   uint32
	Period     int64
}

// Group is andiron_group.
type Group struct {
	LabelStart uint32
	NLabels    uint32
	RowStart   uint32
	NRows      uint32
}

// Row is andiron_row.
type Row struct {
	Value     int64
	Samples   uint64
	Stack     uint32
	Type      uint32
	AttrStart uint32
	NAttrs    uint32
	Link      uint32
	NTimes    uint32
	TimeStart uint32
	reserved  uint32
}

// Loss is andiron_loss.
type Loss struct {
	Samples  uint64
	Reason   uint32
	reserved uint32
}

// Encoded is andiron_encoded.
type Encoded struct {
	Offset      uint64
	Length      uint32
	Segment     uint32
	Group       uint32
	Format      uint32
	ContentType uint32
	Query       uint32
	RawBytes    uint64
	NStacks     uint64
	StartNs     int64
	EndNs       int64
}

// struct andiron_column
type cColumn struct {
	id       uint32
	elemSize uint32
	segment  uint32
	reserved uint32
	offset   uint64
	count    uint64
}

// struct andiron_segment
type cSegment struct {
	base     *byte
	size     uint64
	fd       int32
	reserved uint32
}

// struct andiron_batch
type cBatch struct {
	size      uint32
	demangle  uint32
	nColumns  uint32
	nSegments uint32
	columns   *cColumn
	segments  *cSegment
	startNs   int64
	endNs     int64
	samples   uint64
	bytes     uint64
	producer  uint64
	sequence  uint64
	owner     unsafe.Pointer
	retain    uintptr
	release   uintptr
}

// Within C's memory.
type table struct {
	base     unsafe.Pointer
	elemSize uint64
	count    uint64
}

// Batch is the profiles of one interval: all targets', in tables. It is empty once the function that
// it was given to has returned, and no other goroutine may be reading it then.
type Batch struct {
	Name       string // of the consumer
	Samples    uint64
	Start, End time.Time

	tables   [columnEnd]table
	segments [][]byte
}

func newBatch(name string, c *cBatch) (*Batch, error) {
	malformed := &Error{syscall.EBADMSG, "a batch whose columns do not lie in its memory"}
	if c == nil || c.size < uint32(unsafe.Offsetof(c.retain)) {
		return nil, malformed
	}
	b := &Batch{Name: name, Samples: c.samples, Start: time.Unix(0, c.startNs), End: time.Unix(0, c.endNs)}
	for _, s := range unsafe.Slice(c.segments, c.nSegments) {
		b.segments = append(b.segments, unsafe.Slice(s.base, s.size))
	}
	for _, column := range unsafe.Slice(c.columns, c.nColumns) {
		if column.id == 0 || column.id >= uint32(columnEnd) || column.count == 0 {
			continue
		}
		if column.segment >= c.nSegments || column.elemSize == 0 {
			return nil, malformed
		}
		memory := b.segments[column.segment]
		n := uint64(len(memory))
		if column.offset > n || column.count > (n-column.offset)/uint64(column.elemSize) {
			return nil, malformed
		}
		b.tables[column.id] = table{unsafe.Pointer(&memory[column.offset]), uint64(column.elemSize), column.count}
	}
	return b, nil
}

func (c *callback) takeBatch(p *cProfile) error {
	b, err := newBatch(goString(p.name), p.batch)
	if err != nil {
		return err
	}
	defer func() { b.tables, b.segments = [columnEnd]table{}, nil }()
	return c.batch(b)
}

// Count is how many records a column has.
func (b *Batch) Count(column Column) uint32 {
	if column >= columnEnd {
		return 0
	}
	return uint32(min(b.tables[column].count, 1<<32-1))
}

// What is longer than T is cut; what is shorter is zero at its end.
func record[T any](b *Batch, column Column, i uint32) (result T) {
	t := &b.tables[column]
	if uint64(i) >= t.count {
		return result
	}
	n := min(t.elemSize, uint64(unsafe.Sizeof(result)))
	from := unsafe.Add(t.base, uint64(i)*t.elemSize)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&result)), n), unsafe.Slice((*byte)(from), n))
	return result
}

func (b *Batch) bytes(segment uint32, offset uint64, length uint32) []byte {
	if segment >= uint32(len(b.segments)) {
		return nil
	}
	memory := b.segments[segment]
	n := uint64(len(memory))
	if offset > n || uint64(length) > n-offset {
		return nil
	}
	return memory[offset : offset+uint64(length)]
}

// Each gives record i of its column.
func (b *Batch) Function(i uint32) Function   { return record[Function](b, Functions, i) }
func (b *Batch) Line(i uint32) Line           { return record[Line](b, Lines, i) }
func (b *Batch) Location(i uint32) Location   { return record[Location](b, Locations, i) }
func (b *Batch) Mapping(i uint32) Mapping     { return record[Mapping](b, Mappings, i) }
func (b *Batch) Stack(i uint32) Stack         { return record[Stack](b, Stacks, i) }
func (b *Batch) Frame(i uint32) uint32        { return record[uint32](b, Frames, i) }
func (b *Batch) Attribute(i uint32) Attribute { return record[Attribute](b, Attributes, i) }
func (b *Batch) Link(i uint32) Link           { return record[Link](b, Links, i) }
func (b *Batch) Type(i uint32) ProfileType    { return record[ProfileType](b, Types, i) }
func (b *Batch) Group(i uint32) Group         { return record[Group](b, Groups, i) }
func (b *Batch) Row(i uint32) Row             { return record[Row](b, Rows, i) }
func (b *Batch) Time(i uint32) int64          { return record[int64](b, Times, i) }
func (b *Batch) Loss(i uint32) Loss           { return record[Loss](b, Losses, i) }
func (b *Batch) Encoded(i uint32) Encoded     { return record[Encoded](b, Encodeds, i) }

// String is text i.
func (b *Batch) String(i uint32) string {
	s := record[cStringRecord](b, Strings, i)
	return string(b.bytes(s.segment, s.offset, s.length))
}

// Data is a copy of an encoded profile's bytes.
func (b *Batch) Data(e Encoded) []byte {
	return append([]byte(nil), b.bytes(e.Segment, e.Offset, e.Length)...)
}

// AttributesOf gives n attributes from AttributeIndices[start] on: a group's labels, a row's.
func (b *Batch) AttributesOf(start, n uint32) []Attribute {
	count := b.Count(AttributeIndices)
	if start > count {
		return nil
	}
	attributes := make([]Attribute, min(n, count-start))
	for i := range attributes {
		attributes[i] = b.Attribute(record[uint32](b, AttributeIndices, start+uint32(i)))
	}
	return attributes
}

// FramesOf gives a stack's locations, leaf first.
func (b *Batch) FramesOf(s Stack) []uint32 {
	count := b.Count(Frames)
	if s.Start > count {
		return nil
	}
	frames := make([]uint32, min(s.Length, count-s.Start))
	for i := range frames {
		frames[i] = b.Frame(s.Start + uint32(i))
	}
	return frames
}
