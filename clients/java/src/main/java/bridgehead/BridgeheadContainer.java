package bridgehead;

import com.github.dockerjava.api.command.InspectContainerResponse;
import java.util.LinkedHashMap;
import java.util.Map;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;

/** ZooKeeper and brokers in one container, on free ports of the Docker host. */
public class BridgeheadContainer extends GenericContainer<BridgeheadContainer>
    implements Bridgehead<BridgeheadContainer> {
  private static final int CONTROL = 9091; // the brokers have the ports after it
  private final Control control = new Control();
  private byte[] evidence;
  private boolean isReady;

  public BridgeheadContainer(String image) {
    super(image);
  }

  /** The run's evidence as an archive (tar, gzip); null until the container has stopped. */
  public byte[] evidence() {
    return evidence;
  }

  @Override
  protected void configure() {
    withEnv(control.environment("0.0.0.0"));
    withEnv("BRIDGEHEAD_ADVERTISED", "late");
    for (int broker = 0; broker <= control.brokers; broker++) {
      addExposedPort(CONTROL + broker);
    }
    waitingFor(Wait.forHttp("/openapi").forPort(CONTROL));
  }

  /** Tells the brokers their mapped ports; returns when the cluster is ready. */
  @Override
  protected void containerIsStarted(InspectContainerResponse information) {
    control.url = "http://" + getHost() + ":" + getMappedPort(CONTROL);
    var addresses = new LinkedHashMap<String, String>();
    for (int broker = 1; broker <= control.brokers; broker++) {
      addresses.put(String.valueOf(broker), getHost() + ":" + getMappedPort(CONTROL + broker));
    }
    control.post("/advertise", Map.of("addresses", addresses));
    isReady = true;
  }

  @Override
  protected void containerIsStopping(InspectContainerResponse information) {
    if (isReady) evidence = control.judge();
  }

  @Override
  public Control control() {
    return control;
  }
}
