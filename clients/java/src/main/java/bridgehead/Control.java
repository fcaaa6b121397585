package bridgehead;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/** A cluster's settings and its control API; {@code GET /openapi} lists the operations. */
public final class Control {
  static final Gson GSON = new Gson();
  static final String USER = "admin";
  final Map<String, String> properties = new LinkedHashMap<>();
  final String token = UUID.randomUUID().toString();
  int brokers = 3;
  String password;
  String url;
  String verdict;
  private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  /** Returns the variables of docs/container.md; clients connect to brokers at {@code host}. */
  Map<String, String> environment(String host) {
    var cluster = new LinkedHashMap<String, Object>(Map.of("properties", properties));
    if (password != null) {
      cluster.put("listeners", Map.of("CLIENT", Map.of("protocol", "SASL_SSL", "host", host)));
      cluster.put("users", Map.of(USER, Map.of("password", password, "super", true)));
    }
    return Map.of("BRIDGEHEAD_BROKERS", String.valueOf(brokers), "BRIDGEHEAD_CONTROL_TOKEN", token,
        "BRIDGEHEAD_CLUSTER", GSON.toJson(cluster));
  }

  /** Returns the response of a GET, such as {@code get("/status")}. */
  public JsonObject get(String path) {
    return GSON.fromJson(new String(send(path, HttpRequest.newBuilder().GET())), JsonObject.class);
  }

  /** Returns the response of a POST, such as {@code post("/node/kill", Map.of("id", 2))}. */
  public JsonObject post(String path, Map<String, ?> fields) {
    var body = HttpRequest.BodyPublishers.ofString(GSON.toJson(fields));
    return GSON.fromJson(new String(send(path, HttpRequest.newBuilder().POST(body))), JsonObject.class);
  }

  /** Seals and judges the run; returns the evidence, an archive. */
  byte[] judge() {
    post("/evidence/seal", Map.of());
    verdict = post("/judge", Map.of()).get("verdict").getAsString();
    return send("/evidence", HttpRequest.newBuilder().GET());
  }

  private byte[] send(String path, HttpRequest.Builder request) {
    try {
      request.uri(URI.create(url + path)).header("Authorization", "Bearer " + token);
      var response = http.send(request.build(), BodyHandlers.ofByteArray());
      if (response.statusCode() != 200) {
        throw new IllegalStateException(path + ": " + new String(response.body()).strip());
      }
      return response.body();
    } catch (IOException | InterruptedException error) {
      throw new IllegalStateException("No answer from the control API at " + url, error);
    }
  }
}
