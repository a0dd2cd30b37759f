/* Models that the first set of measured rows names without their config: name, config.json. Read by `foretell validate`
 * and by the golden tests. */
#ifndef FT_STUDY_MEASURED_MODEL_LIST_H
#define FT_STUDY_MEASURED_MODEL_LIST_H
#define MEASURED_MODEL_LIST(X) \
    X("bert_large", \
      "{\"model_type\":\"bert\",\"hidden_size\":1024,\"intermediate_size\":4096,\"num_hidden_layers\":" \
      "24,\"num_attention_heads\":16,\"is_decoder\":true,\"architectures\":[\"BertLMHeadModel\"]}") \
    X("bert_base", "{\"model_type\":\"bert\",\"architectures\":[\"BertForMaskedLM\"]}") \
    X("gpt2", "{\"model_type\":\"gpt2\"}") \
    X("gpt2_pad", "{\"model_type\":\"gpt2\",\"vocab_size\":50304}") \
    X("gpt2_medium", "{\"model_type\":\"gpt2\",\"n_embd\":1024,\"n_head\":16,\"n_layer\":24}") \
    X("gpt2_large", "{\"model_type\":\"gpt2\",\"n_embd\":1280,\"n_head\":20,\"n_layer\":36}") \
    X("gpt3_xl", "{\"model_type\":\"gpt2\",\"n_embd\":3072,\"n_head\":24,\"n_layer\":24,\"n_positions\":2048}") \
    X("llama_1b", \
      "{\"model_type\":\"llama\",\"hidden_size\":2048,\"intermediate_size\":8192,\"num_hidden_layers\":16," \
      "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":128256," \
      "\"tie_word_embeddings\":true}") \
    X("llama_8b", \
      "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336," \
      "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8," \
      "\"vocab_size\":128256}") \
    X("resnet50", "{\"model_type\":\"resnet\",\"num_labels\":1000}")
#endif
