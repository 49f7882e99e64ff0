import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.extensions.python.PythonExternalTransform;
import org.apache.beam.sdk.io.TextIO;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.schemas.Schema;
import org.apache.beam.sdk.transforms.Create;
import org.apache.beam.sdk.transforms.MapElements;
import org.apache.beam.sdk.values.PCollection;
import org.apache.beam.sdk.values.Row;
import org.apache.beam.sdk.values.TypeDescriptors;

/** Release visits per day: java Release EXPANSION_SERVICE OUTPUT [options of Beam]. */
public class Release {
  private static final Schema VISIT =
      Schema.builder().addStringField("visitor_id").addStringField("day").build();
  private static final Schema BUDGET =
      Schema.builder().addDoubleField("epsilon").addDoubleField("delta").build();

  public static void main(String[] words) {
    String[] options = Arrays.copyOfRange(words, 2, words.length);
    Pipeline pipeline = Pipeline.create(PipelineOptionsFactory.fromArgs(options).create());
    List<Row> rows = new ArrayList<>();
    for (int visitor = 0; visitor < 1000; visitor++) {
      String day = visitor % 2 == 0 ? "mon" : "tue";
      rows.add(Row.withSchema(VISIT).addValues("v" + visitor, day).build());
    }
    PCollection<Row> visits = pipeline.apply(Create.of(rows).withRowSchema(VISIT));
    PCollection<Row> released =
        visits.apply(
            PythonExternalTransform.<PCollection<Row>, PCollection<Row>>from(
                    "beam_dp.beam_yaml.private_transforms.private_aggregate", words[0])
                .withKwarg("person", "visitor_id")
                .withKwarg("select", "SELECT day, count(*) AS visits FROM rows GROUP BY day")
                .withKwarg("budget", Row.withSchema(BUDGET).addValues(10.0, 1e-6).build()));
    released
        .apply(
            MapElements.into(TypeDescriptors.strings())
                .via(row -> row.getString("day") + "," + row.getInt64("visits")))
        .apply(TextIO.write().to(words[1]).withoutSharding());
    pipeline.run().waitUntilFinish();
  }
}
