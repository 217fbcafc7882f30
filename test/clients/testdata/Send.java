import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.HttpsURLConnection;

/** Prints what a URL answers to the bearer token TOKEN, by each of the usual clients, with what the machine trusts by default. */
public class Send {
    public static void main(String[] args) throws Exception {
        URI uri = URI.create(args[0]);
        String bearer = "Bearer " + System.getenv("TOKEN");

        HttpsURLConnection connection = (HttpsURLConnection) uri.toURL().openConnection();
        connection.setRequestProperty("Authorization", bearer);
        System.out.println("URLConnection " + new String(connection.getInputStream().readAllBytes(), StandardCharsets.UTF_8));

        HttpRequest request = HttpRequest.newBuilder(uri).header("Authorization", bearer).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) throw new Exception(uri + ": " + answer.statusCode());
        System.out.println("HttpClient " + answer.body());
    }
}
