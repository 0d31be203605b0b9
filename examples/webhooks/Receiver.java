// Receives Till's webhooks with nothing but Java 17 or newer:
//
//   TILL_WEBHOOK_SECRET=whsec_... PORT=3000 java Receiver.java

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    static final int TOLERANCE_SECONDS = 300;
    static final int BODY_BYTES_MAX = 1024 * 1024;

    // Two, separated by a comma, during the grace period of a rolled secret.
    static final List<String> SECRETS =
        Stream.of(environment("TILL_WEBHOOK_SECRET", "").split(",")).filter(secret -> !secret.isEmpty()).toList();

    /** True if Till signed exactly these bytes, with one of our secrets, in the last five minutes. */
    static boolean isGenuine(byte[] body, String header) throws GeneralSecurityException {
        String time = "";
        List<byte[]> signatures = new ArrayList<>();
        for (String entry : header.split(",")) {
            String[] parts = entry.strip().split("=", 2);
            String value = parts.length == 2 ? parts[1] : "";
            if (parts[0].equals("t") && time.isEmpty()) time = value;
            if (parts[0].equals("v1")) signatures.add(value.getBytes(UTF_8));
        }
        if (!time.matches("[0-9]{1,12}")) return false;
        if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(time)) > TOLERANCE_SECONDS) return false;
        for (String secret : SECRETS) {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
            mac.update(("v1=" + time + ".").getBytes(UTF_8));
            byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(UTF_8);
            // Takes constant time, unlike Arrays.equals.
            for (byte[] given : signatures) if (MessageDigest.isEqual(given, expected)) return true;
        }
        return false;
    }

    // An event can arrive more than once. Programs with a database store the IDs in a unique column, in the transaction
    // that processes the event.
    static final Set<String> HANDLED = new HashSet<>();

    static synchronized void handleOnce(String event) {
        String id = text(event, "id");
        if (HANDLED.contains(id)) return;
        handle(event);
        HANDLED.add(id);
    }

    static void handle(String event) {
        System.out.println(text(event, "id") + " " + text(event, "type"));
    }

    // A name with its text, any other text, or a bracket.
    static final Pattern TOKEN = Pattern.compile("""
        "([^"\\\\]*+)"\\s*+:\\s*+"([^"\\\\]*+)"|"(?:[^"\\\\]++|\\\\.)*+"|[{}\\[\\]]""");

    /** Returns a text at the top level of an event. The JDK has no JSON parser: use Jackson or Gson in your program. */
    static String text(String event, String name) {
        int depth = 0;
        for (Matcher token = TOKEN.matcher(event); token.find(); ) {
            switch (token.group().charAt(0)) {
                case '{', '[' -> depth++;
                case '}', ']' -> depth--;
                default -> {
                    if (depth == 1 && name.equals(token.group(1))) return token.group(2);
                }
            }
        }
        throw new IllegalArgumentException("There is no " + name + " in " + event);
    }

    /** Returns the status of the response. */
    static int receive(HttpExchange exchange) throws IOException, GeneralSecurityException {
        // The body is used unchanged. Parsed and serialized again, it would have other bytes than Till signed.
        byte[] body = exchange.getRequestBody().readNBytes(BODY_BYTES_MAX + 1);
        if (body.length > BODY_BYTES_MAX) return 413;
        String header = exchange.getRequestHeaders().getFirst("X-Signature");
        if (header == null || !isGenuine(body, header)) return 400;
        handleOnce(new String(body, UTF_8));
        return 200;
    }

    static String environment(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    public static void main(String[] arguments) throws IOException {
        if (SECRETS.isEmpty()) {
            System.err.println("TILL_WEBHOOK_SECRET must hold the endpoint's secret, whsec_...");
            System.exit(1);
        }
        int port = Integer.parseInt(environment("PORT", "3000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            int status = 500;
            try {
                status = receive(exchange);
            } catch (Exception error) {
                // After any status other than 2xx, Till sends the event again later.
                error.printStackTrace();
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
        System.out.println("Listening on http://127.0.0.1:" + server.getAddress().getPort());
    }
}
