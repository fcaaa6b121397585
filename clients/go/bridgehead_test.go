package bridgehead

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Sessions end after 2 s; a response to a write is sent when every broker has applied the write.
var properties = map[string]string{
	"zookeeper.session.timeout.ms": "2000", "bridgehead.metadata.blocking": "cluster",
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needsDocker(t *testing.T) {
	if exec.Command("docker", "version").Run() != nil {
		t.Skip("NOT TESTED: no Docker engine answers")
	}
}

func adminOf(t *testing.T, cluster *Cluster) *kadm.Client {
	client, err := cluster.Client(t.Context())
	check(t, err)
	options := []kgo.Opt{kgo.SeedBrokers(client.BootstrapServers...)}
	if client.TLS != nil {
		options = append(options, kgo.DialTLSConfig(client.TLS))
	}
	if client.User != "" {
		login := scram.Auth{User: client.User, Pass: client.Password}
		options = append(options, kgo.SASL(login.AsSha256Mechanism()))
	}
	kafka, err := kgo.NewClient(options...)
	check(t, err)
	t.Cleanup(kafka.Close)
	return kadm.NewClient(kafka)
}

// failOver kills the controller under franz-go; the judge finds no error.
func failOver(t *testing.T, cluster *Cluster) {
	ctx, admin := t.Context(), adminOf(t, cluster)
	rule, err := cluster.AddFault(ctx, map[string]any{"action": "error", "error": "NOT_CONTROLLER", "api": "CreateTopics"})
	check(t, err)
	_, err = admin.CreateTopic(ctx, 2, 3, nil, "before")
	check(t, err)
	var faults struct {
		Rules []struct {
			Name string
			Hits int
		}
	}
	check(t, cluster.Do(ctx, "GET", "/faults/list", nil, &faults))
	hits := 0
	for _, listed := range faults.Rules {
		if listed.Name != rule {
			t.Fatalf("a rule %s", listed.Name)
		}
		hits += listed.Hits
	}
	if len(faults.Rules) != 3 || hits < 1 {
		t.Fatalf("%d rules, %d hits", len(faults.Rules), hits)
	}
	killed, err := cluster.KillController(ctx)
	check(t, err)
	next, err := cluster.WaitForController(ctx, killed)
	check(t, err)
	if next == killed {
		t.Fatalf("the controller is still %d", next)
	}
	_, err = admin.CreateTopic(ctx, 2, 2, nil, "after")
	check(t, err)
	topics, err := admin.ListTopics(ctx)
	check(t, err)
	if !topics.Has("before") || !topics.Has("after") {
		t.Fatalf("topics: %v", topics.Names())
	}
	check(t, cluster.Stop(context.Background()))
	if cluster.Verdict != "PASS" || len(cluster.Evidence) < 1000 {
		t.Fatalf("verdict %s, %d bytes of evidence", cluster.Verdict, len(cluster.Evidence))
	}
}

func TestInAContainerThroughMappedPorts(t *testing.T) {
	needsDocker(t)
	cluster, err := RunContainer(t.Context(), "bridgehead:latest", Options{Properties: properties})
	check(t, err)
	failOver(t, cluster)
}

func TestInAContainerWithLoginsOverTLS(t *testing.T) {
	needsDocker(t)
	options := Options{Properties: properties, SaslSSL: true}
	cluster, err := RunContainer(t.Context(), "bridgehead:latest", options)
	check(t, err)
	failOver(t, cluster)
}

func TestAsAChildProcess(t *testing.T) {
	command := os.Getenv("BRIDGEHEAD_COMMAND")
	if command == "" {
		command = "bridgehead"
	}
	cluster, err := RunProcess(t.Context(), command, t.TempDir()+"/cluster", Options{Properties: properties})
	check(t, err)
	failOver(t, cluster)
}
