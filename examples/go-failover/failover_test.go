package failover

import (
	"context"
	"testing"

	bridgehead "bridgehead/clients/go"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTopicIsCreatedAfterTheControllerDied(t *testing.T) {
	ctx := t.Context()
	properties := map[string]string{"zookeeper.session.timeout.ms": "2000"}
	kafka, err := bridgehead.RunContainer(ctx, "bridgehead", bridgehead.Options{Properties: properties})
	check(t, err)
	config, err := kafka.Client(ctx)
	check(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(config.BootstrapServers...))
	check(t, err)
	defer client.Close()

	killed, err := kafka.KillController(ctx)
	check(t, err)
	_, err = kafka.WaitForController(ctx, killed)
	check(t, err)
	_, err = kadm.NewClient(client).CreateTopic(ctx, 3, 2, nil, "orders")
	check(t, err)

	check(t, kafka.Stop(context.Background()))
	if kafka.Verdict != "PASS" { // An acknowledged write was lost or executed twice.
		t.Fatal(kafka.Verdict)
	}
}
