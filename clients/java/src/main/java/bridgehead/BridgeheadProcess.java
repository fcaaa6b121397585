package bridgehead;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A cluster as a child process, {@code bridgehead up --json}; it ends with this process, even after SIGKILL. */
public class BridgeheadProcess implements Bridgehead<BridgeheadProcess>, AutoCloseable {
  private final Control control = new Control();
  private final String command;
  private final Path folder;
  private Process process;

  /** The folder gets the cluster's data and evidence; the log is beside it. */
  public BridgeheadProcess(String command, Path folder) {
    this.command = command;
    this.folder = folder;
  }

  /** Returns when the cluster is ready. */
  public BridgeheadProcess start() throws IOException {
    var log = folder.resolveSibling(folder.getFileName() + ".log");
    var builder = new ProcessBuilder(command, "up", "--json", "--ports", "auto", "--until-eof", "--control", "0",
        "--override", "bridgehead.faults.allow=true", "--data-dir", folder.toString()).redirectError(log.toFile());
    builder.environment().putAll(control.environment("127.0.0.1"));
    process = builder.start();
    var document = new StringBuilder();
    for (var lines = process.inputReader(); document.indexOf("\n}") < 0; document.append('\n')) {
      var line = lines.readLine();
      if (line == null) throw new IllegalStateException(Files.readString(log).strip());
      document.append(line);
    }
    control.url = Control.GSON.fromJson(document.toString(), JsonObject.class).get("control_url").getAsString();
    return this;
  }

  @Override
  public void close() throws IOException {
    try (var input = process.getOutputStream()) { // whose end stops the cluster
      control.judge();
    }
    process.onExit().join();
  }

  @Override
  public Control control() {
    return control;
  }
}
