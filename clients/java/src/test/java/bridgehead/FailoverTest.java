package bridgehead;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.testcontainers.DockerClientFactory;

/** Kafka's AdminClient works on while a controller dies; the judge finds no error. */
class FailoverTest {
  @TempDir Path folder;

  private static void needsDocker() {
    Assumptions.assumeTrue(DockerClientFactory.instance().isDockerAvailable(), "NOT TESTED: no Docker engine answers");
  }

  /** Sessions end after 2 s; a response to a write is sent when every broker has applied the write. */
  private static <T extends Bridgehead<T>> T configured(T cluster) {
    return cluster.withProperty("zookeeper.session.timeout.ms", "2000")
        .withProperty("bridgehead.metadata.blocking", "cluster");
  }

  private static void failOver(Bridgehead<?> cluster) throws Exception {
    try (var admin = Admin.create(cluster.clientConfig())) {
      assertEquals(3, admin.describeCluster().nodes().get().size());
      var rule = cluster.addFault(Map.of("action", "error", "error", "NOT_CONTROLLER", "api", "CreateTopics"));
      admin.createTopics(List.of(new NewTopic("before", 2, (short) 3))).all().get();
      var hits = 0;
      for (var listed : cluster.control().get("/faults/list").getAsJsonArray("rules")) {
        assertEquals(rule, listed.getAsJsonObject().get("name").getAsString());
        hits += listed.getAsJsonObject().get("hits").getAsInt();
      }
      assertTrue(hits >= 1, "the client got no NOT_CONTROLLER");
      var killed = cluster.killController();
      assertNotEquals(killed, cluster.waitForController(killed));
      admin.createTopics(List.of(new NewTopic("after", 2, (short) 2))).all().get();
      assertEquals(Set.of("before", "after"), admin.listTopics().names().get());
    }
  }

  @Test
  void inAContainerThroughMappedPorts() throws Exception {
    needsDocker();
    var cluster = configured(new BridgeheadContainer("bridgehead:latest"));
    try (cluster) {
      cluster.start();
      failOver(cluster);
    }
    assertEquals("PASS", cluster.verdict());
    assertTrue(cluster.evidence().length > 1000);
  }

  @Test
  void inAContainerWithLoginsOverTls() throws Exception {
    needsDocker();
    var cluster = configured(new BridgeheadContainer("bridgehead:latest").withSaslSsl());
    try (cluster) {
      cluster.start();
      assertEquals("SASL_SSL", cluster.clientConfig().get("security.protocol"));
      failOver(cluster);
    }
    assertEquals("PASS", cluster.verdict());
  }

  @Test
  void asAChildProcess() throws Exception {
    var command = System.getenv().getOrDefault("BRIDGEHEAD_COMMAND", "bridgehead");
    var cluster = configured(new BridgeheadProcess(command, folder.resolve("cluster")));
    try (cluster) {
      failOver(cluster.start());
    }
    assertEquals("PASS", cluster.verdict());
  }
}
