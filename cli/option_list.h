/* Every option of the program that is no key of a request, once; those that are come from the table of request keys
 * (request/keys_list.h). The parser, --help, the man page and the shell completions are made from both; an option that
 * is in neither does not exist.
 *
 *   X(id, long name, short or 0, kind, argument, default or NULL, commands, group, help)
 *
 * `argument` of a CHOICE lists the words. */
#define CLI_OPTION_LIST(X)                                                                                             \
    /* data and predictors */                                                                                          \
    X(DATA, "data", 0, FOLDER, "DIR", NULL, FIT | VALIDATE, DATA, "measurements; fit takes several [those shipped]")   \
    X(PREDICTOR, "predictor", 'p', FILE, "FILE|roofline|linear|scaling:GPU", NULL,                                     \
      KERNEL | VALIDATE | BATCH | STEPS | INFER | SERVE | LARGEST | COMPARE | CALIBRATE | FIT | TRACE | EXCHANGE |     \
      WEB | DOCTOR, DATA,                                                                                              \
      "a predictor other than the built-in one")                                                                       \
    X(CALIBRATION, "calibration", 0, FILE, "FILE", NULL, KERNEL | VALIDATE | BATCH | STEPS | INFER | SERVE | LARGEST | \
      COMPARE | TRACE | EXCHANGE | WEB | DOCTOR, DATA,                                                                 \
      "adaptation to one GPU, from its own measurements (fit --calibrate)")                                            \
    X(CALIBRATE_FROM, "calibrate", 0, FILE, "FILE", NULL, FIT, DATA,                                                   \
      "adapt a predictor to one GPU instead: measurements that foretell calibrate took")                               \
    X(FIT_MINUTES, "minutes", 0, REAL, "X", NULL, FIT, DATA, "with --calibrate: only points of the first X minutes")   \
    X(OUTPUT, "output", 'o', FILE, "FILE", NULL, FIT, DATA, "where the predictor, or the calibration, goes")           \
    X(EXCLUDE_GPU, "exclude-gpu", 0, GPU, "GPU", NULL, FIT, DATA, "leave this GPU's measurements out; may be repeated")\
    X(FAMILY, "family", 0, WORD, "NAME", NULL, FIT | VALIDATE, DATA,                                                   \
      "only this family of kernels, or FAMILY/VARIANT; may be repeated")                                               \
    X(CROSS_VALIDATE, "cross-validate", 0, SWITCH, NULL, NULL, FIT, DATA,                                              \
      "also fit without each GPU, and without each generation, and report the errors there")                           \
    X(HELD_OUT, "held-out", 0, SWITCH, NULL, NULL, VALIDATE, DATA, "only rows the predictor was not fitted to")        \
    X(BUDGET, "budget", 0, FILE, "FILE", NULL, VALIDATE, DATA,                                                         \
      "fail where an error exceeds this file's; by default budget.json beside the measurements")                       \
    X(LINES_SHARD, "shard", 0, WORD, "I/N", NULL, BATCH, DATA,                                                         \
      "answer the I-th of N parts of the file; the outputs in order are what one run writes")                          \
    X(FIT_SHARD, "shard", 0, WORD, "I/N", NULL, FIT, DATA,                                                             \
      "with --cross-validate: only the I-th of N parts of the kernel families, for job arrays")                        \
    X(THREADS, "threads", 'j', WHOLE, "N", "0", FIT | VALIDATE | BATCH | WEB, DATA, "threads; 0 is one per core")      \
    /* plan, choose */                                                                                                 \
    X(JOB, "task", 0, CHOICE, "train|serve|infer", "train", PLANS | CHOOSE, PLAN,                                      \
      "what the GPUs are for; infer: a fixed number of requests, with nobody waiting [serve with --slo or --rate]")    \
    /* web */                                                                                                          \
    X(PORT, "port", 0, WHOLE, "N", "8080", WEB, SERVER, "port to listen on; 0 is any free one")                        \
    X(OPEN, "open", 0, SWITCH, NULL, NULL, WEB, SERVER, "show the page in the browser")                                \
    X(LISTEN, "listen", 0, WORD, "ADDRESS", "127.0.0.1", WEB, SERVER,                                                  \
      "address to listen on; 0.0.0.0 is all of them, and needs --token")                                               \
    X(TOKEN, "token", 0, WORD, "SECRET", NULL, WEB, SERVER, "secret that clients must send; at least 16 letters")      \
    X(WEB_FILES, "files", 0, FOLDER, "DIR", NULL, WEB, SERVER,                                                         \
      "requests may read files under it: configs, ONNX, traces [none]")                                                \
    X(PAGE, "page", 0, FOLDER, "DIR", NULL, WEB, SERVER, "a page other than the one built or installed")               \
    X(TIMEOUT, "timeout", 0, REAL, "S", "10", WEB, SERVER, "seconds a client may take to send a request")              \
    /* calibrate: read by python/foretell/calibrate/options.py */                                                      \
    X(CALIBRATE_MINUTES, "minutes", 0, REAL, "X", "5", CALIBRATE, DATA,                                                \
      "time to measure, including the earlier runs of --resume")                                                       \
    X(CALIBRATE_OUTPUT, "output", 'o', FILE, "FILE", NULL, CALIBRATE, DATA,                                            \
      "where the measurements go [calibration-GPU.jsonl]; the calibration goes beside them")                           \
    X(RESUME, "resume", 0, FILE, "FILE", NULL, CALIBRATE, DATA, "go on with these measurements")                       \
    X(FAMILIES, "families", 0, WORD, "LIST", NULL, CALIBRATE, DATA, "only these: gemm,attention,... [all]")            \
    X(DTYPES, "dtypes", 0, WORD, "LIST", NULL, CALIBRATE, DATA, "only these number formats: bf16,fp32,... [all]")      \
    X(HELD_OUT_SHARE, "held-out", 0, REAL, "X", "0.15", CALIBRATE, DATA,                                               \
      "share of the points held out from the fit, for the errors before and after")                                    \
    X(SEED, "seed", 0, WHOLE, "N", "0", CALIBRATE, DATA, "another choice of shapes")                                   \
    X(CALIBRATE_GPU, "gpu", 'g', GPU, "GPU", NULL, CALIBRATE, DATA,                                                    \
      "catalogue name or spec file [as the driver names it]")                                                          \
    X(CALIBRATE_RESULT, "calibration", 0, FILE, "FILE", NULL, CALIBRATE, DATA, "where the calibration goes")           \
    X(NO_FIT, "no-fit", 0, SWITCH, NULL, NULL, CALIBRATE, DATA, "only measure")                                        \
    X(ALLOW_BUSY, "allow-busy", 0, SWITCH, NULL, NULL, CALIBRATE, DATA,                                                \
      "measure even if somebody else is using the GPU")                                                                \
    X(SIMULATE, "simulate", 0, GPU, "GPU", NULL, CALIBRATE, DATA, "a dry run: times are forecasts with noise")         \
    /* output */                                                                                                       \
    X(SWEEP, "sweep", 0, WORD, "KEY=FROM:TO[:STEP]", NULL, KERNEL | TRAIN | SCALE | INFER | SERVE | LARGEST, OUTPUT,   \
      "forecast over a range of one number; STEP x2 doubles it each time")                                             \
    X(CSV, "csv", 0, SWITCH, NULL, NULL, KERNEL | LARGEST, OUTPUT, "--sweep as comma-separated values")                \
    X(SCALE_CSV, "csv", 0, SWITCH, NULL, NULL, SCALE, OUTPUT,                                                          \
      "the two curves, or --sweep, as comma-separated values")                                                         \
    X(BASELINES, "baselines", 0, SWITCH, NULL, NULL, VALIDATE, OUTPUT,                                                 \
      "also print the errors of roofline, linear and scaling:GPU")                                                     \
    X(SCALING_FROM, "scaling-from", 0, GPU, "GPU", "a100_sxm_80gb", VALIDATE, OUTPUT,                                  \
      "the measured GPU that --baselines scales from")                                                                 \
    X(ROWS_TABLE, "rows", 0, SWITCH, NULL, NULL, VALIDATE, OUTPUT, "print every case: measured against forecast")      \
    X(WORST, "worst", 0, WHOLE, "N", NULL, VALIDATE, OUTPUT, "print the N cases with the largest errors")              \
    X(HTML, "html", 0, FILE, "FILE", NULL, KERNEL | TRAIN | SCALE | INFER | SERVE | COMPARE | LARGEST, OUTPUT,         \
      "write one page with pictures and tables that needs no network")                                                 \
    X(SVG, "svg", 0, FILE, "FILE", NULL, KERNEL | TRAIN | SCALE | INFER | SERVE, OUTPUT, "write one picture")          \
    X(PICTURE, "picture", 0, CHOICE,                                                                                   \
      "roofline|timeline|memory|layers|classes|intervals|pipeline|phases|peak|scaling", "roofline", TRAIN, OUTPUT,     \
      "what --svg draws")                                                                                              \
    X(STEP_CSV, "csv", 0, SWITCH, NULL, NULL, TRAIN, OUTPUT,                                                           \
      "print the step's kernels, or --sweep, as comma-separated values")                                               \
    X(INFER_CSV, "csv", 0, SWITCH, NULL, NULL, INFER, OUTPUT,                                                          \
      "print the grid, or --sweep, as comma-separated values")                                                         \
    X(SERVE_CSV, "csv", 0, SWITCH, NULL, NULL, SERVE, OUTPUT,                                                          \
      "print every request, or --sweep, as comma-separated values")                                                    \
    X(PERFETTO, "perfetto", 0, FILE, "FILE", NULL, SERVE, OUTPUT,                                                      \
      "write iterations and requests as a trace for Perfetto or chrome://tracing")                                     \
    X(TRACE, "trace", 0, FILE, "FILE", NULL, TRAIN, OUTPUT,                                                            \
      "write the step as a trace for Perfetto or chrome://tracing")                                                    \
    X(CHAKRA, "chakra", 0, FOLDER, "DIR", NULL, TRAIN, OUTPUT,                                                         \
      "write the step as MLCommons Chakra execution traces, a file per rank, for ASTRA-sim")                           \
    X(RANK_GROUPS, "groups", 0, SWITCH, NULL, NULL, TRAIN | PLANS, OUTPUT,                                             \
      "also print the rank groups of the layout, of plans the first (in Megatron's order)")                            \
    X(ADVICE, "advice", 0, CHOICE, "few|all|none", "few", TRAIN | INFER | SERVE, OUTPUT,                               \
      "what to change, by the time it saves; all: with verdicts, reasons and findings (in JSON only on request)")      \
    X(TECHNIQUES, "techniques", 0, SWITCH, NULL, NULL, TRAIN | INFER, OUTPUT,                                          \
      "instead of the step: what each technique does to its time and memory")                                          \
    X(DETAIL, "detail", 0, CHOICE, "summary|layers|kernels", "summary", TRAIN, OUTPUT,                                 \
      "how much detail to print")                                                                                      \
    X(COMPARE_DETAIL, "detail", 0, CHOICE, "summary|kernels", "summary", COMPARE, OUTPUT,                              \
      "the ten kernels that differ most, or all of them")                                                              \
    X(VERBOSE, "verbose", 'v', SWITCH, NULL, NULL, MODELS, OUTPUT, "also where each model's figures come from")        \
    X(TRACE_TOP, "top", 'n', WHOLE, "N", "8", TRACE, OUTPUT, "rows of each table")                                     \
    X(JSON, "json", 0, SWITCH, NULL, NULL,                                                                             \
      KERNEL | GPUS | FIT | VALIDATE | STEPS | INFER | SERVE | MODELS | LARGEST | COMPARE | TRACE | EXCHANGE | DOCTOR, \
      OUTPUT,                                                                                                          \
      "JSON on stdout and nothing else")                                                                               \
    X(COLOR, "color", 0, CHOICE, "auto|always|never", "auto", EVERY, OUTPUT, "when to colour; auto honours NO_COLOR")  \
    X(NO_CONFIG, "no-config", 0, SWITCH, NULL, NULL, EVERY, OUTPUT,                                                    \
      "ignore the settings file and the FORETELL_* variables for defaults")                                            \
    X(HELP, "help", 'h', SWITCH, NULL, NULL, EVERY, OUTPUT, "this text")                                               \
    X(VERSION, "version", 0, SWITCH, NULL, NULL, EVERY, OUTPUT, "the version")

/* Flags that are another name of a key, or that a command shows with another default.
 *
 *   V(id, key, long name, short or 0, kind, default or NULL, commands, group, help) */
#define CLI_VARIANT_LIST(V)                                                                                            \
    V(MODEL_BATCH, MICRO_BATCH, "batch", 0, WHOLE, NULL, STEPS | LARGEST, ALIAS, "as --micro-batch-size")              \
    V(INFER_EXECUTION, EXECUTION, "execution", 'x', CHOICE, "cuda_graph", INFER, WORKLOAD,                             \
      "replayed as serving engines do, or another way")                                                                \
    V(SCALE_EXECUTION, EXECUTION, "execution", 'x', CHOICE, "fused", SCALE | PLANS, WORKLOAD,                          \
      "hand-fused (Megatron), operator by operator, compiled, replayed, or without a host")                            \
    V(SEVERAL_GPUS, GPU, "gpu", 'g', GPU, NULL, SCALE | INFER | LARGEST | DOCTOR, REQUEST,                             \
      "catalogue name or spec file; give it again for several GPUs")                                                   \
    V(ONE_GPU, GPU, "gpu", 'g', GPU, NULL, SERVE | PLANS, REQUEST,                                                     \
      "catalogue name or spec file; several only with --sweep")                                                        \
    V(INFER_DP, DP, "dp", 0, WHOLE, "1", INFER, PARALLEL,                                                              \
      "data parallel: copies of the model, each with its own batches and cache; rates are totals")                     \
    V(SERVE_DP, DP, "dp", 0, WHOLE, "1", SERVE, PARALLEL,                                                              \
      "attention data parallel: ranks of one engine, each attending to its own sequences")                             \
    V(SCALE_ZERO, ZERO, "zero", 0, WHOLE, NULL, SCALE, PARALLEL,                                                       \
      "sharded over data ranks: 1 optimizer states, 2 and gradients, 3 and parameters [3; 1 with --pp]")
