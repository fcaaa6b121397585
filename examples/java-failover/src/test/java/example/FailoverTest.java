package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import bridgehead.BridgeheadContainer;
import java.util.List;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.junit.jupiter.api.Test;

class FailoverTest {
  @Test
  void topicIsCreatedAfterTheControllerDied() throws Exception {
    var kafka = new BridgeheadContainer("bridgehead").withProperty("zookeeper.session.timeout.ms", "2000");
    try (kafka) {
      kafka.start();
      try (var admin = Admin.create(kafka.clientConfig())) {
        kafka.killController();
        admin.createTopics(List.of(new NewTopic("orders", 3, (short) 2))).all().get();
      }
    }
    assertEquals("PASS", kafka.verdict()); // No acknowledged write was lost or executed twice.
  }
}
