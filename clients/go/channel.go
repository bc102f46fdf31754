package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Every call may be retried when the server is unavailable: calls that modify state carry a request_id, with which the
// server detects repeats.
const retries = `{"methodConfig": [{
  "name": [{}],
  "retryPolicy": {
    "maxAttempts": 5, "initialBackoff": "0.2s", "maxBackoff": "3s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]
  }
}]}`

// Timeout of unary calls.
const callTimeout = 15 * time.Second

// A bearer sends a key or token with every call; with TLS configured, over TLS only.
type bearer struct {
	token     string
	cleartext bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return !b.cleartext }

// openChannel opens a channel to the public API at WRIT_ADDRESS with the key in WRIT_API_KEY: over TLS if WRIT_CA_FILE
// is set, otherwise in cleartext, as the development port requires.
func openChannel() (*grpc.ClientConn, error) {
	key := os.Getenv("WRIT_API_KEY")
	if key == "" {
		return nil, errors.New("WRIT_API_KEY is not set")
	}
	trust, err := trustOf("WRIT_CA_FILE")
	if err != nil {
		return nil, err
	}
	return dial("WRIT_ADDRESS", "127.0.0.1:8080", key, trust)
}

// openService opens a channel to an internal service, with the token of the calling service. If WRIT_TLS_CA_FILE is
// set, the channel presents the certificate in WRIT_TLS_CERT_FILE, and accepts only a certificate that has the name of
// the called service and is signed by a CA in WRIT_TLS_CA_FILE.
func openService(service, variable, fallback, token string) (*grpc.ClientConn, error) {
	trust, err := trustOf("WRIT_TLS_CA_FILE")
	if err != nil {
		return nil, err
	}
	if trust != nil {
		own, err := tls.LoadX509KeyPair(os.Getenv("WRIT_TLS_CERT_FILE"), os.Getenv("WRIT_TLS_KEY_FILE"))
		if err != nil {
			return nil, fmt.Errorf("WRIT_TLS_CERT_FILE and WRIT_TLS_KEY_FILE: %w", err)
		}
		trust.Certificates = []tls.Certificate{own}
		trust.ServerName = service
	}
	return dial(variable, fallback, token, trust)
}

// trustOf reads the CA certificates in the file that a variable names; nil when the variable is empty.
func trustOf(variable string) (*tls.Config, error) {
	file := os.Getenv(variable)
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s contains no certificate in PEM", variable, file)
	}
	return &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, nil
}

// dial connects over TLS, or in cleartext if trust is nil.
func dial(variable, fallback, token string, trust *tls.Config) (*grpc.ClientConn, error) {
	address := os.Getenv(variable)
	if address == "" {
		address = fallback
	}
	transport := insecure.NewCredentials()
	if trust != nil {
		transport = credentials.NewTLS(trust)
	}
	return grpc.NewClient(
		address,
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(bearer{token, trust == nil}),
		grpc.WithDefaultServiceConfig(retries),
	)
}

// newRequestID returns a request id, which makes retries idempotent.
func newRequestID() string {
	random := make([]byte, 16)
	rand.Read(random)
	return "req_" + hex.EncodeToString(random)
}
