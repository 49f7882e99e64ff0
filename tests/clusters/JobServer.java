import java.util.Arrays;

/**
 * Starts a job server of Beam that stages no class path.
 *
 * <p>The workers of the cluster have the same jars. With its class path, Beam sends all of them with
 * every job, and every job loads and compiles them anew: half a minute for a pipeline of seconds.
 */
class JobServer {
  public static void main(String[] args) throws Exception {
    System.setProperty("java.class.path", "");
    Class.forName(args[0])
        .getMethod("main", String[].class)
        .invoke(null, (Object) Arrays.copyOfRange(args, 1, args.length));
  }
}
