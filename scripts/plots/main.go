// Draws docs/pictures/routing.svg and docs/pictures/performance.svg from the tables of docs/routing.md and
// docs/performance.md, so that pictures and tables say the same.
//
//	make plots
//	go run ./scripts/plots -docs docs
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	docs := flag.String("docs", "docs", "the `folder` of the pages")
	flag.Parse()
	for _, p := range pictures {
		svg, err := p.draw(*docs)
		if err != nil {
			log.Fatal(err)
		}
		file := filepath.Join(*docs, "pictures", p.file)
		if err := os.WriteFile(file, svg, 0o644); err != nil {
			log.Fatal(err)
		}
		fmt.Println(file)
	}
}

// pictures are all there are.
var pictures = []picture{
	{"routing.svg", "routing.md", routing},
	{"performance.svg", "performance.md", performance},
}

// A picture is made of one page's text.
type picture struct {
	file, page string
	of         func(page string) ([]byte, error)
}

func (p picture) draw(docs string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(docs, p.page))
	if err != nil {
		return nil, err
	}
	svg, err := p.of(string(text))
	if err != nil {
		return nil, fmt.Errorf("cannot draw %s: %s: %w", p.file, p.page, err)
	}
	return svg, nil
}
