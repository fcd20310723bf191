"""Tables of tensor names: llama.cpp's first, then what checkpoints call the same thing.

Read from llama.cpp's `gguf-py/gguf/tensor_mapping.py` (MIT) and from the parameter names of
mlx-lm 0.32.2's models (MIT). `#` stands for a number.
"""


def table(text: str) -> dict[str, str]:
    """Return {name in a checkpoint: name in a GGUF file} from lines that begin with the latter."""
    rows = (line.split() for line in text.strip().splitlines())
    return {theirs: row[0] for row in rows for theirs in row[1:]}


def names(text: str) -> frozenset[str]:
    """Return the names of a text, parted by white space."""
    return frozenset(text.split())


TOP = table("""
    token_embd            embed_tokens embeddings embedding word_embeddings tok_embeddings
    token_embd            wte embed_in
    position_embd         wpe
    output_norm           norm norm_f ln_f final_layernorm final_layer_norm final_norm output_norm
    token_embd_norm       embedding_norm
    output                lm_head embed_out output
    per_layer_token_embd  embed_tokens_per_layer
    per_layer_model_proj  per_layer_model_projection
    per_layer_proj_norm   per_layer_projection_norm
    altup_proj            altup_projections.#
    altup_unembd_proj     altup_unembed_projections.#
""")
MTP_TOP = table("""
    nextn.eh_proj           fc eh_proj
    nextn.enorm             pre_fc_norm_embedding
    nextn.hnorm             pre_fc_norm_hidden
    nextn.shared_head_norm  norm
""")
BLOCK = table("""
    attn_norm            input_layernorm norm ln_1 attn_norm operator_norm attention_layernorm
    attn_norm            pre_mixer_norm
    post_attention_norm  post_self_attn_layernorm post_mixer_norm
    ffn_norm             post_attention_layernorm pre_feedforward_layernorm pre_mlp_layernorm
    ffn_norm             pre_mlp_norm pre_ff_layernorm feedforward_layernorm ffn_norm ln_2
    pre_ffw_norm_2       pre_feedforward_layernorm_2
    post_ffw_norm        post_feedforward_layernorm post_mlp_layernorm post_mlp_norm
    post_ffw_norm_1      post_feedforward_layernorm_1
    post_ffw_norm_2      post_feedforward_layernorm_2
    inp_gate             per_layer_input_gate
    proj                 per_layer_projection
    post_norm            post_per_layer_input_norm
    altup_correct_coef   altup.correction_coefs
    altup_predict_coef   altup.prediction_coefs
    altup_router         altup.modality_router
    altup_router_norm    altup.router_norm
    laurel_l             laurel.linear_left
    laurel_r             laurel.linear_right
    laurel_post_norm     laurel.post_laurel_norm
    shortconv.conv       conv.conv
    shortconv.in_proj    conv.in_proj
    shortconv.out_proj   conv.out_proj
    nextn.eh_proj        eh_proj
    nextn.enorm          enorm
    nextn.hnorm          hnorm
    nextn.embed_tokens   embed_tokens
    nextn.shared_head_head  shared_head.head
    nextn.shared_head_norm  shared_head.norm
""")
# Here the norm after attention comes before the residual is added.
NORM_AFTER_ATTENTION = names("""
    afmoe exaone4 gemma2 gemma3 gemma3n gemma4 glm4moe gpt-oss muse-glimmer olmo2 qwen35
    qwen35moe qwen3next seed_oss
""")
ATTENTION = table("""
    attn_q          q_proj wq c_q
    attn_k          k_proj wk c_k
    attn_v          v_proj wv c_v
    attn_output     o_proj wo out_proj c_proj dense
    attn_qkv        qkv_proj query_key_value c_attn W_pack Wqkv wqkv
    attn_gate       gate_proj g_proj
    attn_q_norm     q_norm q_layernorm query_layernorm
    attn_k_norm     k_norm k_layernorm key_layernorm
    attn_q_a        q_a_proj
    attn_q_b        q_b_proj
    attn_q_a_norm   q_a_layernorm
    attn_kv_a_mqa   kv_a_proj_with_mqa
    attn_kv_a_norm  kv_a_layernorm
    attn_kv_b       kv_b_proj
    attn_k_b        embed_q
    attn_v_b        unembed_out
    indexer.attn_k    indexer.wk
    indexer.attn_q_b  indexer.wq_b
    indexer.k_norm    indexer.k_norm
    indexer.proj      indexer.weights_proj
    ssm_beta        b_proj
    ssm_f_a         f_a_proj
    ssm_f_b         f_b_proj
    ssm_g_a         g_a_proj
    ssm_g_b         g_b_proj
    ssm_norm        o_norm
    ssm_conv1d_q    q_conv.conv q_conv1d
    ssm_conv1d_k    k_conv.conv k_conv1d
    ssm_conv1d_v    v_conv.conv v_conv1d
""")
RECURRENT = table("""
    ssm_in       in_proj in_proj_qkvz
    attn_qkv     in_proj_qkv
    attn_gate    in_proj_z
    ssm_alpha    in_proj_a
    ssm_beta     in_proj_b
    ssm_ba       in_proj_ba
    ssm_conv1d   conv1d
    ssm_x        x_proj bcdt_proj
    ssm_dt       dt_proj
    ssm_norm     norm
    ssm_dt_norm  dt_layernorm
    ssm_b_norm   b_layernorm
    ssm_c_norm   c_layernorm
    ssm_out      out_proj
""")
# RWKV 7 has attention's names for something else.
RWKV = table("""
    time_mix_receptance  attn.r_proj
    time_mix_key         attn.k_proj
    time_mix_value       attn.v_proj
    time_mix_output      attn.o_proj
    time_mix_ln          attn.g_norm
    channel_mix_key      ffn.key
    channel_mix_value    ffn.value
    attn_norm_2          ffn_norm
""")
CONTAINERS = {
    "self_attn": (ATTENTION,),
    "attn": (ATTENTION,),
    "attention": (ATTENTION,),
    "linear_attn": (RECURRENT,),
    "mamba": (RECURRENT,),
    "mixer": (RECURRENT, ATTENTION),
}
ROUTERS = names("""
    gate gate.wg gate.proj gate.gate_proj router router.gate router.layer router.proj
    router.classifier
""")
MATRICES = table("""
    gate     gate_proj w1
    up       up_proj w3 c_fc fc1 dense_h_to_4h
    down     down_proj w2 c_proj fc2 dense_4h_to_h output_linear
    gate_up  gate_up_proj input_linear
""")
# The last part of a name that ends in neither `.weight` nor `.bias`.
LAST = {
    "A_log": "ssm_a",
    "D": "ssm_d",
    "dt_bias": "ssm_dt.bias",
    "sinks": "attn_sinks.weight",
    "attention_sink_bias": "attn_sinks.weight",
    "e_score_correction_bias": "exp_probs_b.bias",
    "expert_bias": "exp_probs_b.bias",
    "layer_scalar": "layer_output_scale.weight",
    "correct_output_scale": "altup_correct_scale.weight",
    "per_expert_scale": "ffn_down_exps.scale",
    "router.scale": "ffn_gate_inp.scale",
}
# Parts that make an image or a sound into embeddings, or speech from a text model's output.
TOWERS = names("""
    vision_tower vision_model vision_encoder vision_embedder vision_adapter vision_projection
    vision_embed_tokens visual image_encoder vit embed_vision embed_audio audio_tower audio_model
    audio_encoder multi_modal_projector mm_projector img_projector patch_merge_mlp aligner
    connector image_newline view_seperator talker code2wav token2wav
""")
# general.architecture, then the `model_type` (less a final `_text`) where it is another word.
ARCHITECTURES = table("""
    bailingmoe2     bailing_moe bailing_moe_v2
    chatglm         glm
    command-r       cohere
    deci            nemotron_nas
    deepseek2       deepseek_v2 deepseek_v3 kimi_k2 kimi_k25 kimi_vl glm4_moe_lite
    deepseek32      deepseek_v32
    ernie4_5-moe    ernie4_5_moe
    exaone-moe      exaone_moe
    falcon-h1       falcon_h1
    glm-dsa         glm_moe_dsa
    glm4            glm4v
    glm4moe         glm4_moe glm4v_moe solar_open
    gpt-oss         gpt_oss
    gptneox         gpt_neox
    granitehybrid   granitemoehybrid
    granitemoe      granitemoeshared
    hunyuan-dense   hunyuan_v1_dense
    hunyuan-moe     hunyuan hunyuan_v1_moe
    kimi-linear     kimi_linear
    lfm2            lfm2_vl
    lfm2moe         lfm2_moe
    llama           mistral mixtral internlm3 pixtral llava
    mimo2           mimo_v2_flash
    minimax-m2      minimax minimax_m2
    mistral3        ministral3
    muse-glimmer    muse_glimmer
    olmo2           olmo3
    phi2            phi phi_msft
    phi3            phi3small
    qwen2           mimo
    qwen2moe        qwen2_moe
    qwen2vl         qwen2_vl qwen2_5_vl
    qwen35          qwen3_5
    qwen35moe       qwen3_5_moe
    qwen3moe        qwen3_moe
    qwen3next       qwen3_next
    qwen3vl         qwen3_vl
    qwen3vlmoe      qwen3_vl_moe
    starcoder       gpt_bigcode
    step35          step3p5
""")
SAME_ARCHITECTURES = names("""
    afmoe apertus arcee baichuan bitnet bloom codeshell cohere2 dbrx deepseek dots1 ernie4_5 exaone
    exaone4 falcon gemma gemma2 gemma3 gemma3n gemma4 glm4 gpt2 gptj granite granitemoe internlm2
    jamba laguna lfm2 llama llama4 mamba mamba2 mellum minicpm minicpm3 mistral4 nemotron
    nemotron_h olmo olmo2 olmoe openelm orion phi3 phimoe plamo plamo2 plamo3 qwen qwen2 qwen3 rwkv7
    seed_oss smollm3 spark2_5 stablelm starcoder2 xverse
""")
# GGUF keys that are a number of the config as it stands, and the names it has there.
CONFIG_KEYS = table("""
    context_length  max_position_embeddings n_positions n_ctx max_sequence_length max_seq_len
    context_length  max_context_length seq_length model_max_length
    expert_used_count    num_experts_per_tok num_experts_per_token top_k_experts moe_topk moe_top_k
    expert_used_count    moe_k num_selected_experts experts_per_token
    expert_shared_count  n_shared_experts num_shared_experts num_shared_expert
    expert_shared_count  moe_num_shared_experts
    interleave_moe_layer_step        interleave_moe_layer_step moe_layer_interval
    attention.q_lora_rank            q_lora_rank
    attention.kv_lora_rank           kv_lora_rank
    attention.shared_kv_layers       num_kv_shared_layers
    attention.indexer.head_count     index_n_heads
    attention.indexer.key_length     index_head_dim
    attention.indexer.top_k          index_topk
    embedding_length_per_layer_input hidden_size_per_layer_input
    altup.num_inputs                 altup_num_inputs
    altup.active_idx                 altup_active_idx
    shortconv.l_cache                conv_L_cache
    ssm.conv_kernel                  mamba_d_conv conv_kernel d_conv linear_conv_kernel_dim
    ssm.state_size                   mamba_d_state ssm_state_size state_size d_state
    ssm.state_size                   linear_key_head_dim
    ssm.group_count                  mamba_n_groups n_groups linear_num_key_heads
""")
WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "model_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "num_attention_groups")
FEED_FORWARD = ("intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner")
