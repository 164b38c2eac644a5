// The race's program for db-scheduler: `prepare`, `load` or `work`.
import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerClient;
import com.github.kagkarlsson.scheduler.task.SchedulableInstance;
import com.github.kagkarlsson.scheduler.task.SchedulableTaskInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

public final class Program {
  private static final int CALL = 2000;
  private static final int PAYLOAD_BYTES = 256;
  private static final int THREADS = 50;
  private static final long FLUSH_MS = 200;
  private static final String STAMPS = System.getenv("RACE_STAMPS");
  private static final ByteBuffer kept = ByteBuffer.allocate(1 << 24).order(ByteOrder.LITTLE_ENDIAN);

  private static final String TABLES =
      """
      create table scheduled_tasks (
          task_name text not null, task_instance text not null, task_data bytea, execution_time timestamptz not null,
          picked boolean not null, picked_by text, last_success timestamptz, last_failure timestamptz,
          consecutive_failures int, last_heartbeat timestamptz, version bigint not null, priority smallint,
          primary key (task_name, task_instance)
      );
      create index execution_time_idx on scheduled_tasks (execution_time);
      create index last_heartbeat_idx on scheduled_tasks (last_heartbeat);
      create index priority_execution_time_idx on scheduled_tasks (priority desc, execution_time asc);
      """;

  public static void main(String[] arguments) throws Exception {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(System.getenv("RACE_JDBC"));
    config.setMaximumPoolSize(arguments[0].equals("work") ? THREADS : 2);
    HikariDataSource database = new HikariDataSource(config);
    OneTimeTask<String> task = Tasks.oneTime("bench", String.class).execute((instance, context) -> handle(instance.getData()));
    switch (arguments[0]) {
      case "prepare" -> prepare(database);
      case "load" -> load(database, task);
      case "work" -> work(database, task);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  private static void prepare(HikariDataSource database) throws Exception {
    try (Connection connection = database.getConnection(); Statement statement = connection.createStatement()) {
      statement.execute(TABLES);
    }
    database.close();
  }

  private static void load(HikariDataSource database, OneTimeTask<String> task) throws Exception {
    SchedulerClient client = SchedulerClient.Builder.create(database, task).build();
    List<SchedulableInstance<?>> jobs = new ArrayList<>();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String due; (due = lines.readLine()) != null; ) {
      long micros = new BigDecimal(due).movePointRight(6).longValue();
      Instant at = Instant.ofEpochSecond(micros / 1_000_000, micros % 1_000_000 * 1000);
      jobs.add(new SchedulableTaskInstance<>(task.instance("job-" + jobs.size(), payload(due)), at));
    }
    for (int from = 0; from < jobs.size(); from += CALL) {
      client.scheduleBatch(jobs.subList(from, Math.min(jobs.size(), from + CALL)));
    }
    database.close();
  }

  private static String payload(String due) {
    String written = "{\"due\": " + due + ", \"pad\": \"";
    return written + "x".repeat(PAYLOAD_BYTES - 2 - written.length()) + "\"}";
  }

  private static void handle(String payload) {
    if (STAMPS == null) {
      return;
    }
    Instant now = Instant.now();
    double due = Double.parseDouble(payload.substring(payload.indexOf(' ') + 1, payload.indexOf(',')));
    synchronized (kept) {
      kept.putDouble(due).putDouble(now.getEpochSecond() + now.getNano() / 1e9);
    }
  }

  private static void work(HikariDataSource database, OneTimeTask<String> task) throws Exception {
    Scheduler scheduler =
        Scheduler.create(database, task)
            .threads(THREADS)
            .pollUsingLockAndFetch(1.0, 4.0)
            .pollingInterval(Duration.ofMillis(10))
            .build();
    Runtime.getRuntime().addShutdownHook(new Thread(scheduler::stop));
    scheduler.start();
    while (true) {
      Thread.sleep(FLUSH_MS);
      flush();
    }
  }

  private static void flush() throws Exception {
    byte[] written;
    synchronized (kept) {
      written = new byte[kept.position()];
      kept.flip().get(written).clear();
    }
    if (written.length > 0) {
      Path file = Path.of(STAMPS + "." + ProcessHandle.current().pid());
      Files.write(file, written, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
  }
}
