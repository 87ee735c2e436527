// say URL: GODEBUG=netdns=go or netdns=cgo chooses the resolver.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	response, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, response.Body)
}
