/** Say URL */
public class Say {
  public static void main(String[] words) throws Exception {
    var request = java.net.http.HttpRequest.newBuilder(java.net.URI.create(words[0])).build();
    var text = java.net.http.HttpResponse.BodyHandlers.ofString();
    System.out.print(java.net.http.HttpClient.newHttpClient().send(request, text).body());
  }
}
