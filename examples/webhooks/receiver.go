// Receives Till's webhooks with nothing but Go 1.18 or newer:
//
//	TILL_WEBHOOK_SECRET=whsec_... PORT=3000 go run receiver.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance    = 300 // seconds
	bodyBytesMax = 1 << 20
)

// Two, separated by a comma, during the grace period of a rolled secret.
var secrets = strings.Split(os.Getenv("TILL_WEBHOOK_SECRET"), ",")

// genuine returns whether Till signed exactly these bytes, with one of our secrets, in the last five minutes.
func genuine(body []byte, header string) bool {
	signedAt := ""
	var signatures [][]byte
	for _, entry := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if name == "t" && signedAt == "" {
			signedAt = value
		}
		if name == "v1" {
			if signature, err := hex.DecodeString(value); err == nil {
				signatures = append(signatures, signature)
			}
		}
	}
	// Digits only, because the signature covers the text of the time.
	seconds, err := strconv.ParseUint(signedAt, 10, 40)
	if err != nil {
		return false
	}
	if age := time.Now().Unix() - int64(seconds); age > tolerance || age < -tolerance {
		return false
	}
	for _, secret := range secrets {
		code := hmac.New(sha256.New, []byte(secret))
		code.Write([]byte("v1=" + signedAt + "."))
		code.Write(body)
		expected := code.Sum(nil)
		for _, signature := range signatures {
			if hmac.Equal(signature, expected) {
				return true
			}
		}
	}
	return false
}

type event struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// An event can arrive more than once. Programs with a database store the IDs in a unique column, in the transaction
// that processes the event.
var (
	handled  = map[string]bool{}
	handling sync.Mutex
)

func handle(received event) error {
	_, err := fmt.Println(received.ID, received.Type)
	return err
}

func receive(response http.ResponseWriter, request *http.Request) {
	// The body is used unchanged. Parsed and serialized again, it would have other bytes than Till signed.
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyBytesMax))
	if err != nil {
		response.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !genuine(body, request.Header.Get("X-Signature")) {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	var received event
	err = json.Unmarshal(body, &received)
	if err == nil {
		handling.Lock()
		defer handling.Unlock()
		if !handled[received.ID] {
			if err = handle(received); err == nil {
				handled[received.ID] = true
			}
		}
	}
	if err != nil {
		// After any status other than 2xx, Till sends the event again later.
		log.Print(err)
		response.WriteHeader(http.StatusInternalServerError)
		return
	}
	response.WriteHeader(http.StatusOK)
}

func main() {
	for _, secret := range secrets {
		if secret == "" {
			log.Fatal("TILL_WEBHOOK_SECRET must hold the endpoint's secret, whsec_...")
		}
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Listening on http://" + listener.Addr().String())
	server := &http.Server{Handler: http.HandlerFunc(receive), ReadTimeout: 30 * time.Second}
	log.Fatal(server.Serve(listener))
}
