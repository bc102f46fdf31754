package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Every call may be sent again when the server was away: reading changes nothing, and what changes
// something carries a request_id, by which a repeat is known.
const retries = `{"methodConfig": [{
  "name": [{}],
  "retryPolicy": {
    "maxAttempts": 5, "initialBackoff": "0.2s", "maxBackoff": "3s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]
  }
}]}`

// How long a call that only asks or orders may take.
const callTimeout = 15 * time.Second

// A bearer shows a key or token on every call.
type bearer struct{ token string }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// The development port is cleartext; with WRIT_CA_FILE the key goes over TLS only.
func (b bearer) RequireTransportSecurity() bool { return os.Getenv("WRIT_CA_FILE") != "" }

// openDoor connects to the public door, where WRIT_ADDRESS says it is.
func openDoor() (*grpc.ClientConn, error) {
	key := os.Getenv("WRIT_API_KEY")
	if key == "" {
		return nil, errors.New("WRIT_API_KEY is not set")
	}
	return dial("WRIT_ADDRESS", "127.0.0.1:8080", key)
}

func dial(variable, fallback, token string) (*grpc.ClientConn, error) {
	address := os.Getenv(variable)
	if address == "" {
		address = fallback
	}
	wire := insecure.NewCredentials()
	if authorities := os.Getenv("WRIT_CA_FILE"); authorities != "" {
		trusted, err := credentials.NewClientTLSFromFile(authorities, "")
		if err != nil {
			return nil, err
		}
		wire = trusted
	}
	return grpc.NewClient(
		address,
		grpc.WithTransportCredentials(wire),
		grpc.WithPerRPCCredentials(bearer{token}),
		grpc.WithDefaultServiceConfig(retries),
	)
}

// newRequestID is what makes a repeat of a request harmless.
func newRequestID() string {
	random := make([]byte, 16)
	rand.Read(random)
	return "req_" + hex.EncodeToString(random)
}
