// Calls Till's API with nothing but Go 1.18 or newer:
//
//	TILL_API_KEY=sk_test_… go run till.go
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const attemptsMax = 4

var (
	address = env("TILL_URL", "http://localhost:4242")
	key     = env("TILL_API_KEY", "")
	client  = http.Client{Timeout: 30 * time.Second}
)

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// TillError is a refusal.
type TillError struct {
	Status      int    `json:"-"`
	RequestID   string `json:"-"`
	Code        string `json:"code"`
	Message     string `json:"message"`
	DeclineCode string `json:"decline_code"`
}

func (e *TillError) Error() string { return fmt.Sprintf("%s (%s, %s)", e.Message, e.Code, e.RequestID) }

type object = map[string]any

// call sends a request, and reads the answer into result. A POST is repeated under one idempotency key until it has an
// answer, and takes effect once.
func call(method, path string, body object, idempotencyKey string, result any) error {
	var payload []byte
	if method == http.MethodPost {
		payload, _ = json.Marshal(body)
		if idempotencyKey == "" {
			random := make([]byte, 16)
			rand.Read(random)
			idempotencyKey = fmt.Sprintf("%x", random)
		}
	}
	for attempt := 1; ; attempt++ {
		pause, err := try(method, path, payload, idempotencyKey, result)
		if pause < 0 || attempt == attemptsMax {
			return err
		}
		if growing := 250 * time.Millisecond << attempt; pause < growing {
			pause = growing
		}
		time.Sleep(pause)
	}
}

// try sends a request once. A negative pause means that a repetition is of no use.
func try(method, path string, payload []byte, idempotencyKey string, result any) (time.Duration, error) {
	request, err := http.NewRequest(method, address+"/v1/"+path, bytes.NewReader(payload))
	if err != nil {
		return -1, err
	}
	request.SetBasicAuth(key, "")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := client.Do(request)
	if err != nil {
		// The answer was lost. The request may have been carried out, and the repetition gets its answer.
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode < 400 {
		return -1, json.Unmarshal(text, result)
	}
	answer := struct{ Error TillError }{}
	if err := json.Unmarshal(text, &answer); err != nil {
		return -1, err
	}
	refusal := &answer.Error
	refusal.Status, refusal.RequestID = response.StatusCode, response.Header.Get("X-Request-Id")
	// 409: another request under this key is being carried out. 429: too many requests. 503: out of service.
	if refusal.Code != "idempotency_key_in_use" && refusal.Status != 429 && refusal.Status != 503 {
		return -1, refusal
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, refusal
}

// Customer and PaymentIntent have the fields that this program reads.
type Customer struct{ ID, Email string }

type PaymentIntent struct {
	ID, Status, Currency string
	AmountReceived       int64 `json:"amount_received"`
}

// each calls a function with all PaymentIntents of a list, page after page.
func each(parameters url.Values, visit func(PaymentIntent)) error {
	for {
		page := struct {
			Data    []PaymentIntent
			HasMore bool `json:"has_more"`
		}{}
		if err := call("GET", "payment_intents?"+parameters.Encode(), nil, "", &page); err != nil {
			return err
		}
		for _, payment := range page.Data {
			visit(payment)
		}
		if !page.HasMore {
			return nil
		}
		parameters.Set("starting_after", page.Data[len(page.Data)-1].ID)
	}
}

func run() error {
	var customer Customer
	jenny := object{"email": "jenny@example.com", "metadata": object{"user": "42"}}
	if err := call("POST", "customers", jenny, "", &customer); err != nil {
		return err
	}
	fmt.Printf("%s is %s\n", customer.ID, customer.Email)

	sale := func(paymentMethod string) object {
		return object{"amount": 2450, "currency": "usd", "customer": customer.ID, "confirm": true, "payment_method": paymentMethod}
	}
	// The shop's own number of the order: after a crash, the same request cannot charge twice.
	order := "order 1 of " + customer.ID
	var paid, again PaymentIntent
	if err := call("POST", "payment_intents", sale("pm_card_visa"), order, &paid); err != nil {
		return err
	}
	fmt.Printf("%s %s: %d %s\n", paid.ID, paid.Status, paid.AmountReceived, paid.Currency)
	if err := call("POST", "payment_intents", sale("pm_card_visa"), order, &again); err != nil {
		return err
	}
	fmt.Printf("%s again, not charged twice\n", again.ID)

	var refusal *TillError
	err := call("POST", "payment_intents", sale("pm_card_insufficient_funds"), "", &paid)
	if !errors.As(err, &refusal) || refusal.Status != http.StatusPaymentRequired {
		return fmt.Errorf("a decline was expected: %w", err)
	}
	fmt.Printf("%s: %s\n", refusal.DeclineCode, refusal.Message)

	return each(url.Values{"customer": {customer.ID}, "limit": {"1"}}, func(payment PaymentIntent) {
		fmt.Printf("- %s %s\n", payment.ID, payment.Status)
	})
}

func main() {
	if !strings.HasPrefix(key, "sk_test_") {
		log.Fatal("TILL_API_KEY must hold a secret key of test mode, sk_test_…")
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
