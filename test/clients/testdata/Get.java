import java.io.FileInputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Prints what each URL of its arguments answers: by HttpClient, and by URLConnection where it is http. */
public class Get {
    public static void main(String[] urls) throws Exception {
        HttpClient client = HttpClient.newBuilder().sslContext(trust(System.getenv("SSL_CERT_FILE"))).build();
        for (String url : urls) {
            URI uri = URI.create(url);
            HttpResponse<String> answer = client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) throw new Exception(url + ": " + answer.statusCode());
            System.out.println("HttpClient " + answer.body());
            if (!uri.getScheme().equals("http")) continue;
            HttpURLConnection old = (HttpURLConnection) uri.toURL().openConnection();
            System.out.println("URLConnection " + new String(old.getInputStream().readAllBytes()));
        }
    }

    private static SSLContext trust(String file) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(file)) {
            store.setCertificateEntry("test", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }
}
