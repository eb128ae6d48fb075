// Searches an index, which is named, by a text alone, and prints the ids of five hits as JSON.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := `{ "size": 5, "query": { "langshift": { "text": "Warum steigt das Meer?", "language": "de" } } }`
	address := os.Getenv("OPENSEARCH_URL") + "/" + os.Args[1] + "/_search?filter_path=hits.hits._id"
	answer, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	printed, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(printed))
}
