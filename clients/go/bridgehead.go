// Package bridgehead starts a Kafka cluster whose controller a test can kill: in a container, or as a
// child process. GET /openapi of the control API lists the operations that Do accepts.
package bridgehead

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	user    = "admin"
	control = 9091 // the port of the control API in the container; those of the brokers follow
)

// Options describe a cluster.
type Options struct {
	// Brokers is their number; 0 means 3.
	Brokers int
	// Properties are Kafka's server properties, and ours, of every broker.
	Properties map[string]string
	// SaslSSL makes clients log in over TLS; Client returns the authority and the login.
	SaslSSL bool
}

// Client is what a Kafka client needs. TLS is nil, and User is empty, unless the cluster has SASL_SSL.
// The mechanism is SCRAM-SHA-256.
type Client struct {
	BootstrapServers []string
	TLS              *tls.Config
	User, Password   string
}

// Cluster is a running cluster.
type Cluster struct {
	// Verdict is PASS, FAIL, or another word for undecided; empty until Stop has returned.
	Verdict string
	// Evidence is an archive (tar, gzip); nil until Stop has returned.
	Evidence             []byte
	url, token, password string
	end                  func(context.Context) error
}

// RunContainer starts ZooKeeper and brokers in one container, on free ports of the Docker host.
func RunContainer(ctx context.Context, image string, options Options) (*Cluster, error) {
	cluster, environment := prepare(&options, "0.0.0.0")
	environment["BRIDGEHEAD_ADVERTISED"] = "late"
	ports := make([]string, options.Brokers+1)
	for broker := range ports {
		ports[broker] = strconv.Itoa(control+broker) + "/tcp"
	}
	container, err := testcontainers.Run(ctx, image,
		testcontainers.WithEnv(environment),
		testcontainers.WithExposedPorts(ports...),
		testcontainers.WithWaitStrategy(wait.ForHTTP("/openapi").WithPort(ports[0])))
	cluster.end = func(ctx context.Context) error { return testcontainers.TerminateContainer(container) }
	if err == nil {
		err = cluster.advertise(ctx, container, ports)
	}
	if err != nil {
		return nil, errors.Join(err, cluster.end(ctx))
	}
	return cluster, nil
}

// advertise tells the brokers their mapped ports; it returns when the cluster is ready.
func (c *Cluster) advertise(ctx context.Context, container testcontainers.Container, ports []string) error {
	host, err := container.Host(ctx)
	addresses := map[string]string{}
	for broker, port := range ports {
		mapped, failure := container.MappedPort(ctx, port)
		err = errors.Join(err, failure)
		addresses[strconv.Itoa(broker)] = fmt.Sprintf("%s:%d", host, mapped.Num())
	}
	if err != nil {
		return err
	}
	c.url = "http://" + addresses["0"]
	delete(addresses, "0")
	return c.Do(ctx, "POST", "/advertise", map[string]any{"addresses": addresses}, nil)
}

// RunProcess starts `bridgehead up` as a child process; it ends with this process, even after SIGKILL.
// The folder gets the cluster's data and evidence.
func RunProcess(ctx context.Context, command, folder string, options Options) (*Cluster, error) {
	cluster, environment := prepare(&options, "127.0.0.1")
	process := exec.Command(command, "up", "--json", "--ports", "auto", "--until-eof", "--control", "0",
		"--override", "bridgehead.faults.allow=true", "--data-dir", folder)
	process.Env = os.Environ()
	for name, value := range environment {
		process.Env = append(process.Env, name+"="+value)
	}
	var log bytes.Buffer
	process.Stderr = &log
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = process.Start(); err != nil {
		return nil, err
	}
	cluster.end = func(context.Context) error { return errors.Join(input.Close(), process.Wait()) }
	var ready struct {
		URL string `json:"control_url"`
	}
	if err = json.NewDecoder(bufio.NewReader(output)).Decode(&ready); err != nil {
		return nil, errors.Join(err, cluster.end(ctx), errors.New(log.String()))
	}
	cluster.url = ready.URL
	return cluster, nil
}

// prepare returns the variables of docs/container.md; clients connect to brokers at host.
func prepare(options *Options, host string) (*Cluster, map[string]string) {
	cluster := &Cluster{token: rand.Text()}
	if options.Brokers == 0 {
		options.Brokers = 3
	}
	document := map[string]any{"properties": options.Properties}
	if options.Properties == nil {
		delete(document, "properties")
	}
	if options.SaslSSL {
		cluster.password = rand.Text()
		document["listeners"] = map[string]any{"CLIENT": map[string]string{"protocol": "SASL_SSL", "host": host}}
		document["users"] = map[string]any{user: map[string]any{"password": cluster.password, "super": true}}
	}
	text, _ := json.Marshal(document) // maps of strings
	return cluster, map[string]string{
		"BRIDGEHEAD_BROKERS":       strconv.Itoa(options.Brokers),
		"BRIDGEHEAD_CONTROL_TOKEN": cluster.token,
		"BRIDGEHEAD_CLUSTER":       string(text),
	}
}

// Client returns what a Kafka client needs.
func (c *Cluster) Client(ctx context.Context) (Client, error) {
	var answer struct {
		Servers   string `json:"bootstrap_servers"`
		Authority string `json:"certificate_authority"`
	}
	err := c.Do(ctx, "GET", "/client", nil, &answer)
	client := Client{BootstrapServers: strings.Split(answer.Servers, ",")}
	if answer.Authority != "" {
		client.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		client.TLS.RootCAs.AppendCertsFromPEM([]byte(answer.Authority))
	}
	if c.password != "" {
		client.User, client.Password = user, c.password
	}
	return client, err
}

// KillController kills the controller's process (SIGKILL) and returns the broker's id.
func (c *Cluster) KillController(ctx context.Context) (int, error) {
	var answer struct{ ID int }
	err := c.Do(ctx, "POST", "/controller/kill", nil, &answer)
	return answer.ID, err
}

// WaitForController returns the controller that every broker that answers names, once it is not otherThan.
func (c *Cluster) WaitForController(ctx context.Context, otherThan int) (int, error) {
	var answer struct {
		ID int `json:"controller_id"`
	}
	err := c.Do(ctx, "POST", "/controller/wait", map[string]any{"other_than": otherThan, "timeout_s": 60}, &answer)
	return answer.ID, err
}

// AddFault adds a fault rule, such as {"action": "close", "api": "CreateTopics"}; it returns its name.
func (c *Cluster) AddFault(ctx context.Context, rule map[string]any) (string, error) {
	var answer struct{ Name string }
	err := c.Do(ctx, "POST", "/faults/add", rule, &answer)
	return answer.Name, err
}

// Do executes an operation of the control API and decodes the response into result, unless it is nil.
func (c *Cluster) Do(ctx context.Context, method, path string, fields map[string]any, result any) error {
	body, err := c.send(ctx, method, path, fields)
	if err == nil && result != nil {
		err = json.Unmarshal(body, result)
	}
	return err
}

func (c *Cluster) send(ctx context.Context, method, path string, fields map[string]any) ([]byte, error) {
	var content io.Reader
	if fields != nil {
		text, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, bytes.TrimSpace(body))
	}
	return body, err
}

// Stop seals and judges the run, fetches its evidence, and stops the cluster.
func (c *Cluster) Stop(ctx context.Context) error {
	var answer struct{ Verdict string }
	err := c.Do(ctx, "POST", "/evidence/seal", nil, nil)
	if err == nil {
		err = c.Do(ctx, "POST", "/judge", nil, &answer)
	}
	if err == nil {
		c.Evidence, err = c.send(ctx, "GET", "/evidence", nil)
	}
	c.Verdict = answer.Verdict
	return errors.Join(err, c.end(ctx))
}
