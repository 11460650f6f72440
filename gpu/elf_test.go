// ELF: the smallest programs that tests need.

package gpu

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
)

// header returns the header of a 64-bit ELF file.
func header(kind elf.Type, machine elf.Machine, class elf.Class) elf.Header64 {
	h := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(class), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	return h
}

func library(machine elf.Machine, class elf.Class) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, header(elf.ET_DYN, machine, class))
	return b.Bytes()
}

// interpreted returns a program for this machine that names a loader.
func interpreted(loader string) []byte {
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	h := header(elf.ET_DYN, machine, elf.ELFCLASS64)
	h.Phnum = 1
	size := uint64(len(loader) + 1)
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h)
	_ = binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_INTERP), Flags: 4, Off: 64 + 56, Filesz: size, Memsz: size, Align: 1})
	b.WriteString(loader + "\x00")
	b.Write(make([]byte, 4096)) // the system reads a page of it
	return b.Bytes()
}
